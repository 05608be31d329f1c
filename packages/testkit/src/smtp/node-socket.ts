import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectSecure, type TLSSocket } from 'node:tls';

/** The socket port of the relay transport over node's own sockets, as the Worker has it over the platform's. */

export interface NodeSockets {
  /** Certificates that are trusted beside none others. */
  ca: string[];
  /** Where a relay of a certain name really listens. */
  at?: (target: { host: string; port: number }) => { host: string; port: number };
}

export interface NodeSocket {
  read: () => Promise<Uint8Array | null>;
  write: (bytes: Uint8Array) => Promise<void>;
  startTls: () => Promise<void>;
  close: () => void;
}

export function nodeSockets({ ca, at = (target) => target }: NodeSockets) {
  return async (target: { host: string; port: number; tls: 'implicit' | 'starttls' }): Promise<NodeSocket> => {
    const plain = connectPlain(at(target));
    plain.setNoDelay(true);
    plain.on('error', () => {});
    let socket: Socket | TLSSocket = plain;
    const secure = async (): Promise<void> => {
      const wrapped = connectSecure({ socket: plain, servername: target.host, ca });
      socket = wrapped;
      await happens(wrapped, 'secureConnect');
    };
    try {
      await happens(plain, 'connect');
      if (target.tls === 'implicit') await secure();
    } catch (error) {
      socket.destroy();
      throw error;
    }
    return {
      read: () => read(socket),
      write: (bytes) => write(socket, bytes),
      startTls: secure,
      close: () => {
        socket.destroy();
        plain.destroy();
      },
    };
  };
}

function happens(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`closed before ${event}`)));
  });
}

/** What has come, or the next that comes; only as much is taken from the other side as somebody reads. */
function read(socket: Socket): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    const settle = (how: () => void): void => {
      socket.off('readable', look);
      socket.off('end', ended);
      socket.off('close', ended);
      socket.off('error', failed);
      how();
    };
    const look = (): void => {
      const bytes = socket.read() as Buffer | null;
      if (bytes !== null) settle(() => resolve(bytes));
      else if (socket.readableEnded) ended();
      else if (socket.destroyed) failed(socket.errored ?? new Error('closed'));
    };
    const ended = (): void => settle(() => resolve(null));
    const failed = (error: Error): void => settle(() => reject(error));
    socket.on('readable', look);
    socket.on('end', ended);
    socket.on('close', ended);
    socket.on('error', failed);
    look();
  });
}

function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
