import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext, TLSSocket } from 'node:tls';
import type { Authority } from './certificates.ts';
import { type RelayScript, ScriptPlayer, type ScriptStep } from './script.ts';

/**
 * A relay on a real port that plays scripts with real TLS: each connection the next one, the last of them for good. What a
 * script calls silence is silence for as long as it says.
 */
export class RelayServer {
  readonly port: number;
  readonly players: ScriptPlayer[] = [];
  open_now = 0;
  open_most = 0;
  #scripts: RelayScript[];
  readonly #server: Server;
  readonly #authority: Authority;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, port: number, authority: Authority) {
    this.#server = server;
    this.port = port;
    this.#authority = authority;
    this.#scripts = [];
  }

  static async start(authority: Authority): Promise<RelayServer> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const relay = new RelayServer(server, address.port, authority);
    server.on('connection', (socket) => relay.#serve(socket));
    return relay;
  }

  /** What the next connections play. */
  play(...scripts: RelayScript[]): void {
    this.#scripts = scripts;
    this.players.length = 0;
    this.open_most = this.open_now;
  }

  get player(): ScriptPlayer {
    const [player] = this.players;
    if (player === undefined) throw new Error('nobody has connected');
    return player;
  }

  /** Ends every connection there is. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.hangUp();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #serve(plain: Socket): void {
    this.#sockets.add(plain);
    this.open_now++;
    this.open_most = Math.max(this.open_most, this.open_now);
    plain.setNoDelay(true);
    plain.on('error', () => {});
    const script = this.#scripts.length > 1 ? this.#scripts.shift() : this.#scripts[0];
    if (script === undefined) {
      plain.destroy();
      return;
    }
    let socket = plain;
    const listen = (): void => {
      socket.on('data', (bytes: Buffer) => player.receive(bytes));
    };
    const handshake = async (name: string): Promise<void> => {
      plain.removeAllListeners('data');
      const { cert, key } = this.#authority.issue({ names: [name] });
      const secure = new TLSSocket(plain, { isServer: true, secureContext: createSecureContext({ cert, key }) });
      secure.on('error', () => {});
      socket = secure;
      await new Promise<void>((resolve) => {
        secure.once('secure', resolve);
        plain.once('close', () => resolve());
      });
      listen();
    };
    const player: ScriptPlayer = new ScriptPlayer(stepsOf(script), {
      send: (bytes) => this.#send(socket, plain, bytes),
      handshake,
      breakHandshake: () => {
        // The client has begun; half of a record of the handshake comes back, and no more.
        plain.once('data', () => plain.end(Buffer.from([0x16, 0x03, 0x03, 0x00, 0x7a, 0x02])));
      },
      silent: async (ms) => {
        await Promise.race([sleep(ms, undefined, { ref: false }), gone]);
      },
      close: () => {
        socket.end();
      },
      reset: () => {
        plain.resetAndDestroy();
      },
    });
    const gone = new Promise<void>((resolve) => {
      plain.once('close', () => {
        this.#sockets.delete(plain);
        this.open_now--;
        player.end();
        resolve();
      });
    });
    this.players.push(player);
    if (script.relay.tls === 'starttls') listen();
    player.play().catch((error: unknown) => {
      throw error;
    });
  }

  /** Waits until the bytes are on their way or the client has gone. */
  async #send(socket: Socket, plain: Socket, bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => {
      if (plain.destroyed) setImmediate(resolve);
      else socket.write(bytes, () => setImmediate(resolve));
    });
  }
}

/** A relay with TLS from the first byte shakes hands before anything else. */
function stepsOf({ relay, steps }: RelayScript): ScriptStep[] {
  const [first] = steps;
  const prepared = first?.expect === undefined && (first?.tls !== undefined || first?.broken_tls === true);
  return relay.tls === 'implicit' && !prepared ? [{ tls: relay.host }, ...steps] : steps;
}
