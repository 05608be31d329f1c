import { type RelayScript, ScriptPlayer, type ServerLine } from './script.ts';
import { idle, VirtualClock } from './virtual-clock.ts';

/**
 * Relays in memory and in virtual time: each connection plays the next script, so that hours of silence cost nothing and
 * every run goes the same way. Nothing is encrypted; a handshake succeeds when the names agree.
 */
export class ScriptedRelay {
  readonly clock: VirtualClock;
  readonly sessions: Session[] = [];
  /** Connections that are open now, and the most that ever were. */
  open_now = 0;
  open_most = 0;
  readonly #scripts: (RelayScript | 'refuses' | 'hangs')[];

  /** @param scripts one for each connection; `refuses` and `hangs` are connections that never stand */
  constructor(scripts: (RelayScript | 'refuses' | 'hangs')[], clock = new VirtualClock()) {
    this.#scripts = [...scripts];
    this.clock = clock;
  }

  readonly open = async (target: { host: string; port: number; tls: string }): Promise<ClientSocket> => {
    const script = this.#scripts.shift();
    if (script === undefined) throw new Error('no connection was expected');
    this.open_now++;
    this.open_most = Math.max(this.open_most, this.open_now);
    if (script === 'refuses') {
      this.open_now--;
      throw new Error('connection refused');
    }
    if (script === 'hangs') {
      // Not before the client has set how long it waits.
      await Promise.resolve();
      await this.clock.advance(3_600_000);
      this.open_now--;
      throw new Error('connection timed out');
    }
    const session = new Session(this, script, target);
    this.sessions.push(session);
    // A server with TLS from the first byte shakes hands before it greets.
    const [first] = script.steps;
    const name = first?.expect === undefined ? first?.tls : undefined;
    if (target.tls === 'implicit' && (first?.broken_tls === true || (name ?? script.relay.host) !== target.host)) {
      session.socket.close();
      throw new Error('handshake failed');
    }
    session.start();
    return session.socket;
  };
}

export interface ClientSocket {
  read: () => Promise<Uint8Array | null>;
  write: (bytes: Uint8Array) => Promise<void>;
  startTls: () => Promise<void>;
  close: () => void;
}

export class Session {
  readonly socket: ClientSocket;
  readonly player: ScriptPlayer;
  /** Everything the client wrote before the line was secure, and after. */
  plain = '';
  secure = '';
  /** Bytes the server had sent and nobody had read, at their most. */
  unread_most = 0;
  closed = false;
  readonly #relay: ScriptedRelay;
  readonly #host: string;
  #isSecure: boolean;
  /** The name in the certificate of the handshake that the server is ready for. */
  #certificate: string | null = null;
  #shaken: () => void = () => {};
  #toClient: Uint8Array[] = [];
  #ended: 'open' | 'closed' | 'reset' = 'open';
  #reader: (() => void) | null = null;

  constructor(relay: ScriptedRelay, script: RelayScript, target: { host: string; tls: string }) {
    this.#relay = relay;
    this.#host = target.host;
    this.#isSecure = target.tls === 'implicit';
    this.player = new ScriptPlayer(script.steps, this.#serverLine());
    this.socket = {
      read: () => this.#read(),
      write: (bytes) => this.#write(bytes),
      startTls: () => this.#startTls(),
      close: () => this.#close(),
    };
  }

  start(): void {
    this.player.play().catch((error: unknown) => {
      throw error;
    });
  }

  #serverLine(): ServerLine {
    return {
      send: async (bytes) => {
        if (this.#ended !== 'open') return;
        this.#toClient.push(bytes);
        this.unread_most = Math.max(
          this.unread_most,
          this.#toClient.reduce((sum, { length }) => sum + length, 0),
        );
        this.#wakeReader();
        // A sender waits until its bytes are on their way; the client may go meanwhile.
        await idle();
      },
      handshake: async (name) => {
        if (this.#isSecure) return;
        this.#certificate = name;
        await new Promise<void>((resolve) => {
          this.#shaken = resolve;
        });
      },
      breakHandshake: () => {
        this.#end('closed');
      },
      silent: async (ms) => {
        await idle();
        if (!this.player.gone) await this.#relay.clock.advance(ms);
      },
      close: () => this.#end('closed'),
      reset: () => this.#end('reset'),
    };
  }

  #end(how: 'closed' | 'reset'): void {
    this.#ended = how;
    this.player.end();
    this.#wakeReader();
  }

  #wakeReader(): void {
    const wake = this.#reader;
    this.#reader = null;
    wake?.();
  }

  async #read(): Promise<Uint8Array | null> {
    if (this.#reader !== null) throw new Error('two reads at once');
    while (this.#toClient.length === 0 && this.#ended === 'open' && !this.closed) {
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
      });
    }
    if (this.closed) throw new Error('read after close');
    const bytes = this.#toClient.shift();
    if (bytes !== undefined) return bytes;
    if (this.#ended === 'reset') throw new Error('connection reset');
    return null;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.closed) throw new Error('write after close');
    if (this.#ended !== 'open') throw new Error('broken pipe');
    const text = Buffer.from(bytes).toString('latin1');
    if (this.#isSecure) this.secure += text;
    else this.plain += text;
    this.player.receive(bytes);
    // A socket takes only so much before the other side has had a look at it.
    if (bytes.length > 1_024) await idle();
  }

  async #startTls(): Promise<void> {
    if (this.#reader !== null) throw new Error('handshake while a read is under way');
    await idle();
    // What is left unread is taken for a part of the handshake, which it is not.
    if (this.#certificate !== this.#host || this.#toClient.length > 0) throw new Error('handshake failed');
    this.#isSecure = true;
    this.#shaken();
  }

  #close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#relay.open_now--;
    this.player.end();
    this.#wakeReader();
  }
}
