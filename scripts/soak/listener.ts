import { createServer, type Server } from 'node:http';
import { persist } from '../load/persist.ts';
import type { Place } from '../load/place.ts';

/**
 * Rare events alone: the memory that the soak watches is that of the sends, and a webhook for each event would be most of
 * the load.
 */
export const TOLD = ['message.bounced', 'message.rejected', 'message.canceled'] as const;

/** A customer's endpoint on this machine that answers well, and remembers no more than which events it was told of. */
export class Listener {
  readonly told = new Set<string>();
  /** Deliveries, repeats among them. */
  deliveries = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.deliveries++;
      this.told.add(String(request.headers['webhook-id']));
      request.resume();
      response.end();
    });
  }

  static async start(): Promise<Listener> {
    const listener = new Listener();
    await new Promise<void>((resolve) => {
      listener.#server.listen(0, '127.0.0.1', resolve);
    });
    return listener;
  }

  /** Has the tenant's events sent here. */
  async subscribe({ client, tenant }: Place): Promise<void> {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    await persist(() =>
      client.call('webhooks.createOfTenant', {
        params: { tenant_id: tenant },
        body: { url: `http://127.0.0.1:${address.port}/soak`, events: [...TOLD], description: 'soak' },
      }),
    );
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
