import { connect } from 'cloudflare:sockets';
import type { OpenRelaySocket, RelaySocket } from '@pmail/transports/smtp/socket.ts';

/** The platform's TCP sockets. They check certificates for the host they were opened for, after STARTTLS too. */
export const openRelaySocket: OpenRelaySocket = async ({ host, port, tls }, unwanted) => {
  const secureTransport = tls === 'implicit' ? 'on' : 'starttls';
  const socket = connect({ hostname: host, port }, { secureTransport, allowHalfOpen: false });
  const line = new Line(socket);
  const giveUp = (): void => line.close();
  unwanted.addEventListener('abort', giveUp);
  try {
    await socket.opened;
  } catch (error) {
    line.close();
    throw error;
  } finally {
    unwanted.removeEventListener('abort', giveUp);
  }
  return line;
};

class Line implements RelaySocket {
  #socket: Socket;
  #reader: ReadableStreamDefaultReader<Uint8Array>;
  #writer: WritableStreamDefaultWriter<Uint8Array>;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#reader = socket.readable.getReader();
    this.#writer = socket.writable.getWriter();
    ignore(socket.closed);
  }

  async read(): Promise<Uint8Array | null> {
    const { done, value } = await this.#reader.read();
    return done ? null : value;
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#writer.write(bytes);
  }

  async startTls(): Promise<void> {
    // The plain streams end with the handshake, and nobody may hold them then.
    this.#reader.releaseLock();
    this.#writer.releaseLock();
    const secure = this.#socket.startTls();
    this.#socket = secure;
    this.#reader = secure.readable.getReader();
    this.#writer = secure.writable.getWriter();
    ignore(secure.closed);
    await secure.opened;
  }

  close(): void {
    ignore(this.#socket.close());
  }
}

/** How a line ends that nobody needs any more is of no interest. */
function ignore(promise: Promise<unknown>): void {
  promise.catch(() => undefined);
}
