import type { Address } from '../address/address.ts';
import type { MessageId } from '../ids.ts';

export type EventSource = 'cloudflare' | 'ses' | 'simulator' | 'loopback' | 'dsn';

export type DeliveryKind = 'delivered' | 'deferred' | 'bounced' | 'failed' | 'rejected' | 'complained';

/**
 * What a provider says happened to one recipient, in one form for every provider. `event_id` names the report: the
 * same id always means the same report, however often it arrives. What is optional is missing in reports that waited in a
 * queue for newer code.
 */
export interface DeliveryEvent {
  source: EventSource;
  event_id: string;
  provider_message_id: string | null;
  /** The Message-ID that recipients see, without brackets, where the provider's id tells it. */
  rfc_message_id?: string | null;
  /** Message-IDs by which a report that came as mail may mean the message, the likeliest first. */
  message_ids?: readonly string[];
  /** Our own id of the message, where it went through the provider or relay and came back. */
  our_message_id?: MessageId | null;
  sender: Address;
  recipient: Address;
  subject: string | null;
  kind: DeliveryKind;
  /** Only for `bounced`: whether the bounce is permanent. */
  hard: boolean;
  /** Reply code such as "550", enhanced code such as "5.1.1", and the text, apart (RFC 5321, RFC 3463). */
  smtp_code: string | null;
  enhanced_code: string | null;
  smtp_response: string | null;
  /** What it adds to the abuse windows; null while nothing is decided (a deferral). */
  outcome: AbuseOutcome | null;
  /** Why the recipient gets on the suppression list, if it does. */
  suppress: SuppressionReason | null;
  /** Unix ms by the provider's clock. */
  occurred_at: number;
}

/** Names of a message that its provider tells without saying that anything has happened to it. */
export interface LearnedId {
  sender: Address;
  provider_message_id: string;
  /** The Message-ID that recipients see, without brackets. */
  rfc_message_id: string;
  our_message_id: MessageId | null;
  /** Unix ms by the provider's clock. */
  occurred_at: number;
}

/** What an event means for the abuse windows of its identity. */
export type AbuseOutcome = 'delivered' | 'bounced' | 'complained' | 'other';

export type SuppressionReason = 'hard_bounce' | 'complaint' | 'unsubscribe' | 'manual' | 'provider';
