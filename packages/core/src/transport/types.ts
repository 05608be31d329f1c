import type { Address, Mailbox } from '../address/address.ts';
import type { DeliveryKind } from '../delivery/events.ts';
import type { MessageId } from '../ids.ts';
import type { InboundJob } from '../queue/jobs.ts';

export const PROVIDERS = ['cloudflare', 'ses', 'smtp', 'simulator', 'loopback'] as const;
export type Provider = (typeof PROVIDERS)[number];

/** A part of a composed message that is not body text. */
export interface OutgoingAttachment {
  filename: string;
  content_type: string;
  disposition: 'attachment' | 'inline';
  content_id: string | null;
  content: Uint8Array;
}

/** What a transport gets: only recipients that are still `queued`. */
export interface OutgoingMessage {
  message_id: MessageId;
  from: Mailbox;
  reply_to: Address | null;
  to: Address[];
  cc: Address[];
  bcc: Address[];
  subject: string;
  text: string | null;
  html: string | null;
  headers: { name: string; value: string }[];
  attachments: OutgoingAttachment[];
  /** Names shown beside recipients; like the four before it only for transports that take a message in fields. */
  names?: Readonly<Record<Address, string>>;
  /** The composed message as stored at acceptance, for transports that take raw mail. */
  mime: Uint8Array;
  /** Hidden recipient of the journal copy that teaches the Message-ID; Cloudflare only. */
  journal_bcc: Address | null;
}

/** The SMTP reply or provider error for one recipient. */
export interface RecipientRefusal {
  address: Address;
  smtp_code: string | null;
  enhanced_code: string | null;
  detail: string;
}

/** An event that a test provider will report about its own accepted mail. */
export interface ScheduledEvent {
  recipient: Address;
  /** Ordinal per recipient, from 1; part of the event's id. */
  n: number;
  after_ms: number;
  kind: DeliveryKind;
  hard: boolean;
  smtp_code: string | null;
  enhanced_code: string | null;
  smtp_response: string | null;
}

export type RejectReason = 'provider_validation' | 'sender_domain_unavailable' | 'recipient_suppressed_by_provider';
/** Why the health of a sending domain should be looked at now: what a transport has found out by a refusal. */
export type DomainIssue = 'sender_domain_unavailable' | 'smtp_auth_failed' | 'smtp_tls_required';
export type RetryClass = 'rate_limit' | 'quota' | 'paused' | 'relay';
export type UncertainReason = 'transport_timeout' | 'transport_connection_lost';

/**
 * How a transport call ended. Everything but `unknown` and `accepted` says for certain that nothing was sent to the
 * recipients it names; whatever is not proven to be a refusal is `unknown` and never tried again.
 */
export type TransportResult =
  | {
      kind: 'accepted';
      /** Null when the provider gave none; the acceptance counts all the same. */
      provider_message_id: string | null;
      rfc_message_id: string | null;
      /** Recipients refused for good while the others were accepted (SMTP 5xx to RCPT TO). */
      refused: RecipientRefusal[];
      /** Recipients refused for now (SMTP 4xx to RCPT TO); they stay queued. */
      deferred: Address[];
      /** Only test providers: what they will report later. */
      scheduled: ScheduledEvent[];
      /** Only loopback: the copies it has put on their way, so that a lost one is sent again. */
      copies: InboundJob[];
    }
  | { kind: 'rejected'; reason: RejectReason; code: string; detail: string; refused: RecipientRefusal[] }
  | { kind: 'suppressed'; code: string; detail: string }
  | { kind: 'retry_later'; class: RetryClass; code: string; detail: string; refused: RecipientRefusal[] }
  | { kind: 'unknown'; reason: UncertainReason; detail: string };

/** A recipient to whom the provider delivers nothing, by its own list. */
export interface ProviderSuppression {
  address: Address;
  /** As the provider says it, for people. */
  reason: string;
  /** Unix ms, null when it does not end by itself. */
  expires_at: number | null;
}

export interface MailTransport {
  readonly provider: Provider;
  /**
   * After an answer `suppressed`: which recipients of that call it was for, as far as the provider tells. Empty when it
   * cannot be told. Only of providers that give that answer.
   */
  findSuppressed?(message: OutgoingMessage): Promise<ProviderSuppression[]>;
  /** Never throws for anything the provider does; a throw means that the caller cannot know, so it counts as unknown. */
  send(message: OutgoingMessage, deadlineMs: number): Promise<TransportResult>;
}
