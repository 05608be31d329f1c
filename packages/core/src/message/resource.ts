import type { Mailbox } from '../address/address.ts';
import type { BounceType, DeliveryStatus, MessageStatus, StatusReason } from '../delivery/status.ts';
import type { AttachmentId, IdentityId, MessageId, ThreadId } from '../ids.ts';
import type { Provider } from '../transport/types.ts';
import type { InboundKind, OutboundKind, SendOperation } from './request.ts';

/** Shapes of the API (contracts, section "Resource shapes"); times are RFC 3339 with milliseconds. */

export interface DeliveryResource {
  address: string;
  field: 'to' | 'cc' | 'bcc';
  status: DeliveryStatus;
  smtp_code: string | null;
  enhanced_code: string | null;
  smtp_response: string | null;
  bounce_type: BounceType | null;
  updated_at: string;
}

export interface AttachmentResource {
  id: AttachmentId;
  filename: string | null;
  content_type: string;
  size: number;
  disposition: 'attachment' | 'inline' | null;
  content_id: string | null;
  text_status: 'pending' | 'ready' | 'unavailable' | 'skipped';
  pages: number | null;
  risk: string | null;
}

export interface TrustResource {
  verdict: 'pass' | 'fail' | 'softfail' | 'none' | 'unaligned' | 'unverified';
  spf: string;
  dkim: string;
  dmarc: string;
  arc: string;
  known_sender: boolean;
  quarantined: boolean;
  spam_score: number | null;
  automated: boolean;
  flags: string[];
}

export interface MessageResource {
  id: MessageId;
  thread_id: ThreadId;
  identity_id: IdentityId;
  direction: 'inbound' | 'outbound';
  status: MessageStatus;
  status_reason: StatusReason | null;
  /** What to do next, where something has to be done. */
  fix: string | null;
  from: Mailbox | null;
  to: Mailbox[];
  cc: Mailbox[];
  bcc: Mailbox[];
  reply_to: Mailbox[];
  delivered_to: string | null;
  is_primary_recipient: boolean | null;
  subject: string | null;
  sent_at: string | null;
  received_at: string;
  extracted_text: string | null;
  text: string | null;
  html: string | null;
  headers: { name: string; value: string }[] | null;
  attachments: AttachmentResource[];
  labels: string[];
  kind: OutboundKind | InboundKind;
  read: boolean;
  operation: SendOperation | null;
  trust: TrustResource | null;
  quarantine_reason: string | null;
  rfc_message_id: string | null;
  in_reply_to: string | null;
  provider: Provider | null;
  provider_message_id: string | null;
  deliveries: DeliveryResource[] | null;
  flags: string[];
  metadata: Record<string, string>;
}

/** The part of a message that events carry. */
export interface MessageSummary {
  id: MessageId;
  thread_id: ThreadId;
  direction: 'inbound' | 'outbound';
  status: MessageStatus;
  from: Mailbox | null;
  to: Mailbox[];
  cc: Mailbox[];
  delivered_to: string | null;
  is_primary_recipient: boolean | null;
  subject: string | null;
  sent_at: string | null;
  received_at: string;
  kind: OutboundKind | InboundKind;
  labels: string[];
  in_reply_to: string | null;
  flags: string[];
}

export interface ThreadResource {
  id: ThreadId;
  subject: string;
  participants: Mailbox[];
  message_count: number;
  unread_count: number;
  first_at: string;
  last_at: string;
  last_inbound_at: string | null;
  last_direction: 'inbound' | 'outbound';
  snippet: string;
  labels: string[];
  archived: boolean;
}
