import { dotStuffed, FINAL_DOT } from '@pmail/core/smtp/body.ts';
import { advance, begin } from '@pmail/core/smtp/exchange.ts';
import type {
  Advance,
  Exchange,
  ExchangeCommand,
  ExchangeEvent,
  ExchangePlan,
  ExchangeResult,
} from '@pmail/core/smtp/exchange-types.ts';
import type { OpenRelaySocket, RelayClock, RelaySocket, RelayTarget } from './socket.ts';

export interface ExchangePorts {
  open: OpenRelaySocket;
  clock: RelayClock;
}

/**
 * Carries one message to one relay over one connection, which is closed before the result is given. All decisions are the
 * exchange's; this only does what it asks for and tells it what happened. Rejects when it has lost track itself.
 *
 * @param deadlineMs how long the whole exchange may take
 */
export function runExchange(
  ports: ExchangePorts,
  target: RelayTarget,
  plan: ExchangePlan,
  mime: Uint8Array,
  deadlineMs: number,
): Promise<ExchangeResult> {
  return new Promise((resolve, reject) => {
    new Run(ports, target, mime, resolve, reject).start(begin(plan), deadlineMs);
  });
}

const encoder = new TextEncoder();

class Run {
  readonly #ports: ExchangePorts;
  readonly #target: RelayTarget;
  readonly #mime: Uint8Array;
  readonly #resolve: (result: ExchangeResult) => void;
  readonly #reject: (error: unknown) => void;
  #exchange: Exchange | undefined;
  #socket: RelaySocket | undefined;
  #reading = false;
  #over = false;
  readonly #unwanted = new AbortController();
  #cancelStep: () => void = () => {};
  #cancelAll: () => void = () => {};

  constructor(
    ports: ExchangePorts,
    target: RelayTarget,
    mime: Uint8Array,
    resolve: (result: ExchangeResult) => void,
    reject: (error: unknown) => void,
  ) {
    this.#ports = ports;
    this.#target = target;
    this.#mime = mime;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(first: Advance, deadlineMs: number): void {
    this.#cancelAll = this.#ports.clock.after(deadlineMs, () => this.#on({ kind: 'timeout', of: 'exchange' }));
    this.#apply(first);
  }

  /** Something happened. Whatever comes after the end is too late to matter. */
  #on(event: ExchangeEvent): void {
    if (this.#over || this.#exchange === undefined) return;
    try {
      this.#apply(advance(this.#exchange, event));
    } catch (error) {
      this.#fall(error);
    }
  }

  #apply({ exchange, commands }: Advance): void {
    this.#exchange = exchange;
    for (const command of commands) this.#do(command);
    if (!this.#over && this.#socket !== undefined && exchange.step !== 'tls') this.#read(this.#socket);
  }

  #do(command: ExchangeCommand): void {
    switch (command.kind) {
      case 'open':
        this.#open();
        break;
      case 'wait':
        this.#cancelStep();
        this.#cancelStep = this.#ports.clock.after(command.ms, () => this.#on({ kind: 'timeout', of: 'step' }));
        break;
      case 'write':
        this.#write(encoder.encode(`${command.line}\r\n`));
        break;
      case 'start_tls':
        this.#startTls();
        break;
      case 'write_body':
        this.#writeBody().catch((error: unknown) => this.#fall(error));
        break;
      case 'write_dot':
        this.#write(FINAL_DOT);
        break;
      case 'close':
        this.#end();
        break;
    }
  }

  #open(): void {
    this.#ports.open(this.#target, this.#unwanted.signal).then(
      (socket) => {
        // It may come too late to be used, but not to be closed.
        if (this.#over) {
          socket.close();
          return;
        }
        this.#socket = socket;
        this.#on({ kind: 'connected' });
      },
      () => this.#on({ kind: 'failed' }),
    );
  }

  /** One read at a time, so that what comes and nobody asked for is seen, and never more than one piece is held. */
  #read(socket: RelaySocket): void {
    if (this.#reading) return;
    this.#reading = true;
    socket.read().then(
      (bytes) => {
        this.#reading = false;
        this.#on(bytes === null ? { kind: 'closed' } : { kind: 'received', bytes });
      },
      () => {
        this.#reading = false;
        this.#on({ kind: 'failed' });
      },
    );
  }

  /** The answer says that it was written, so only a failure is news. */
  #write(bytes: Uint8Array): void {
    this.#connection()
      .write(bytes)
      .catch(() => this.#on({ kind: 'failed' }));
  }

  #startTls(): void {
    this.#connection()
      .startTls()
      .then(
        () => this.#on({ kind: 'secured' }),
        () => this.#on({ kind: 'failed' }),
      );
  }

  async #writeBody(): Promise<void> {
    const socket = this.#connection();
    for (const piece of dotStuffed(this.#mime)) {
      try {
        await socket.write(piece);
      } catch {
        this.#on({ kind: 'failed' });
        return;
      }
      if (this.#exchange?.step !== 'body') return;
      this.#on({ kind: 'body_progress' });
    }
    this.#on({ kind: 'body_written' });
  }

  #connection(): RelaySocket {
    if (this.#socket === undefined) throw new Error('no connection to write to');
    return this.#socket;
  }

  #end(): void {
    const result = this.#exchange?.result ?? null;
    this.#stop();
    if (result === null) this.#reject(new Error('an exchange ended without a result'));
    else this.#resolve(result);
  }

  /** A fault of our own: nobody knows what became of the message. */
  #fall(error: unknown): void {
    if (this.#over) return;
    this.#stop();
    this.#reject(error);
  }

  #stop(): void {
    this.#unwanted.abort();
    this.#over = true;
    this.#cancelStep();
    this.#cancelAll();
    this.#socket?.close();
  }
}
