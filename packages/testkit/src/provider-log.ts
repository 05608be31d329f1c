import { createServer, type Server } from 'node:http';
import { promisify } from 'node:util';

/** One message that the simulated provider took. */
export interface Taken {
  at: number;
  message_id: string;
  recipients: string[];
  bytes: number;
}

/**
 * The simulated provider's own log, outside the service and its state: what it says was taken is held against what the
 * service says. It can also keep its answer back, so that sends are in flight at a known moment.
 */
export class ProviderLog {
  readonly taken: Taken[] = [];
  readonly url: string;
  readonly #server: Server;
  #held: (() => void)[] | null = null;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}/taken`;
  }

  static async start(): Promise<ProviderLog> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const log = new ProviderLog(server, address.port);
    server.on('request', (request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8');
      });
      request.on('end', () => {
        log.taken.push({ at: Date.now(), ...(JSON.parse(text) as Omit<Taken, 'at'>) });
        const answer = (): void => {
          response.end('ok');
        };
        if (log.#held === null) answer();
        else log.#held.push(answer);
      });
    });
    return log;
  }

  /** From now on takes messages and does not answer. */
  hold(): void {
    this.#held ??= [];
  }

  get held(): number {
    return this.#held?.length ?? 0;
  }

  /** Answers everything, and again at once from now on. */
  release(): void {
    for (const answer of this.#held ?? []) answer();
    this.#held = null;
  }

  /**
   * Waits until whoever called has gone, with all that was on its way: of a service that was killed the last bytes may
   * still come in. Gives up where somebody stays.
   */
  async untilAlone(limitMs = 2_000): Promise<void> {
    const connections = promisify(this.#server.getConnections.bind(this.#server));
    const ends = Date.now() + limitMs;
    while ((await connections()) > 0 && Date.now() < ends) {
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    }
  }

  callsFor(messageId: string): Taken[] {
    return this.taken.filter((entry) => entry.message_id === messageId);
  }

  async stop(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
