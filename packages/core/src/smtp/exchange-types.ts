import type { Address } from '../address/address.ts';
import type { RecipientRefusal, UncertainReason } from '../transport/types.ts';
import type { Extensions, Mechanism } from './extensions.ts';
import type { RelayLogin } from './login.ts';
import type { ReplyReader } from './reply.ts';

/** One message to one relay over one connection: what is to be done, what happens, and what comes of it. */

export interface ExchangePlan {
  /** TLS from the first byte (RFC 8314), or by STARTTLS (RFC 3207). Never without. */
  tls: 'implicit' | 'starttls';
  /** What we call ourselves behind EHLO. */
  ehlo_name: string;
  login: RelayLogin;
  from: Address;
  /** At least one. */
  recipients: readonly Address[];
  /** What reports of a bounce are to name, for relays that take it; null for nothing. */
  envelope_id: string | null;
  /** Octets of the message, for relays that want to know before they take it. */
  size: number;
}

/** What is waited for. */
export type Step =
  | 'connect'
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'tls'
  | 'ehlo_secure'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'body'
  /** The final dot was handed to the socket: from here on only a whole reply says what became of the message. */
  | 'dot'
  | 'rset'
  | 'quit'
  | 'over';

export interface Exchange {
  readonly plan: ExchangePlan;
  readonly step: Step;
  readonly reader: ReplyReader;
  readonly extensions: Extensions;
  /** Mechanisms that have not been tried, and what is still to be said in the one under way. */
  readonly login: { readonly left: readonly Mechanism[]; readonly responses: readonly string[] };
  /** Recipients that were answered for so far, in the order of the plan. */
  readonly accepted: readonly Address[];
  readonly refused: readonly RecipientRefusal[];
  readonly deferred: readonly { address: Address; said: Said }[];
  /** Set once; nothing that happens afterwards changes it. */
  readonly result: ExchangeResult | null;
}

export type ExchangeEvent =
  /** The connection stands, with TLS where the plan begins with it. */
  | { kind: 'connected' }
  | { kind: 'received'; bytes: Uint8Array }
  /** The handshake that `start_tls` asked for is done. */
  | { kind: 'secured' }
  /** Another piece of the message was taken by the socket. */
  | { kind: 'body_progress' }
  /** All of it was, but for the final dot. */
  | { kind: 'body_written' }
  /** The other side has ended the connection. */
  | { kind: 'closed' }
  /** Connecting, the handshake, a read or a write has failed. */
  | { kind: 'failed' }
  | { kind: 'timeout'; of: 'step' | 'exchange' };

export type ExchangeCommand =
  | { kind: 'open' }
  /** The step's time starts anew; an earlier `wait` no longer counts. */
  | { kind: 'wait'; ms: number }
  /** A line without its end. `secret` must not be written down anywhere. */
  | { kind: 'write'; line: string; secret: boolean }
  | { kind: 'start_tls' }
  /** The message, dot-stuffed, without the final dot. */
  | { kind: 'write_body' }
  | { kind: 'write_dot' }
  | { kind: 'close' };

/** What a relay or this side says about an end: the reply code or a name of ours, and a text that may be shown. */
export interface Said {
  code: string;
  enhanced_code: string | null;
  detail: string;
}

/** What is wrong with a domain's relay, as its health checks name it. */
export type RelayIssue = 'smtp_auth_failed' | 'smtp_tls_required';

export type ExchangeResult =
  /** The relay took the message for everyone who is neither refused nor deferred. */
  | ({ kind: 'accepted'; refused: RecipientRefusal[]; deferred: Address[] } & Said)
  | ({ kind: 'rejected'; reason: 'provider_validation'; issue: null; refused: RecipientRefusal[] } & Said)
  | ({ kind: 'rejected'; reason: 'sender_domain_unavailable'; issue: RelayIssue; refused: [] } & Said)
  /** Nothing was sent to anyone but for the refusals, which are final. */
  | ({ kind: 'retry_later'; refused: RecipientRefusal[] } & Said)
  | { kind: 'unknown'; reason: UncertainReason; detail: string };

export interface Advance {
  exchange: Exchange;
  commands: ExchangeCommand[];
}
