/** What the exchange with a relay needs of a TCP socket and of a clock, whatever runtime gives them. */

export interface RelayTarget {
  host: string;
  port: number;
  tls: 'implicit' | 'starttls';
}

/**
 * A connection. Every method may reject when the connection has failed. Certificates are checked for the target's host,
 * and a handshake with any other ends in a rejection.
 */
export interface RelaySocket {
  /** The next bytes, of any number; null when the other side has ended the connection. Never called twice at once. */
  read: () => Promise<Uint8Array | null>;
  write: (bytes: Uint8Array) => Promise<void>;
  /** Turns a plain connection into a secure one. No read is under way then. */
  startTls: () => Promise<void>;
  /** Gives up the connection; what was not sent yet is lost. Does not wait. */
  close: () => void;
}

/**
 * Resolves once the connection stands, with TLS where the target begins with it. A connection that is not wanted any
 * more before it stands is given up when `unwanted` fires: one that hangs would hold its place for good.
 */
export type OpenRelaySocket = (target: RelayTarget, unwanted: AbortSignal) => Promise<RelaySocket>;

export interface RelayClock {
  /** Unix ms. */
  now: () => number;
  /** Calls back once, `ms` from now, unless the returned function is called before. */
  after: (ms: number, run: () => void) => () => void;
}

export const systemClock: RelayClock = {
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
