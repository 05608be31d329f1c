import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { Webhook } from 'standardwebhooks';

/** One delivery as it came in, with the verdict of the public library. */
export interface Received {
  at: number;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  event: EventEnvelope;
  /** Which of the known secrets verify it. */
  verified_by: string[];
}

export type Behaviour = (response: ServerResponse, nth: number) => void;

export const answers =
  (...statuses: number[]): Behaviour =>
  (response, nth) => {
    response.writeHead(statuses[Math.min(nth, statuses.length) - 1] ?? 200).end();
  };

/**
 * Receives webhooks as a customer would: keeps the bytes, verifies them with the public `standardwebhooks` package, and
 * answers by path, well or badly.
 */
export class WebhookReceiver {
  readonly received: Received[] = [];
  readonly origin: string;
  /** Secrets by path. */
  readonly secrets = new Map<string, string[]>();
  readonly #behaviours = new Map<string, Behaviour>();
  readonly #server: Server;
  #watchers: (() => void)[] = [];

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.origin = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<WebhookReceiver> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const receiver = new WebhookReceiver(server, address.port);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => receiver.#take(request.url ?? '/', request.headers, Buffer.concat(chunks), response));
    });
    return receiver;
  }

  /** What a path answers; without it 200. */
  behave(path: string, behaviour: Behaviour): void {
    this.#behaviours.set(path, behaviour);
  }

  at(path: string): Received[] {
    return this.received.filter((entry) => entry.path === path);
  }

  /** Waits until a path has got so many, and gives them. */
  async until(path: string, count: number, limitMs = 30_000): Promise<Received[]> {
    const ends = Date.now() + limitMs;
    while (this.at(path).length < count) {
      const left = ends - Date.now();
      if (left <= 0) throw new Error(`${path} got ${this.at(path).length} of ${count} deliveries`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#watchers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this.at(path);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #take(path: string, headers: IncomingHttpHeaders, bytes: Buffer, response: ServerResponse): void {
    const body = bytes.toString('utf8');
    const verified = (this.secrets.get(path) ?? []).filter((secret) => verifies(secret, body, headers));
    this.received.push({
      at: Date.now(),
      path,
      headers,
      body,
      event: JSON.parse(body) as EventEnvelope,
      verified_by: verified,
    });
    const nth = this.at(path).length;
    const behaviour = this.#behaviours.get(path) ?? answers(200);
    behaviour(response, nth);
    for (const watcher of this.#watchers.splice(0)) watcher();
  }
}

export function verifies(secret: string, body: string, headers: IncomingHttpHeaders): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}
