import type { Mailbox } from '@pmail/core/address/address.ts';
import type { BounceType, DeliveryStatus, MessageStatus, StatusReason } from '@pmail/core/delivery/status.ts';
import { UNCERTAIN_FIX } from '@pmail/core/delivery/uncertain.ts';
import type { AttachmentId, MessageId, ThreadId } from '@pmail/core/ids.ts';
import type { InboundKind, OutboundKind, SendOperation } from '@pmail/core/message/request.ts';
import type {
  AttachmentResource,
  DeliveryResource,
  MessageResource,
  MessageSummary,
  TrustResource,
} from '@pmail/core/message/resource.ts';
import type { RecipientField } from '@pmail/core/policy/types.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import { rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { Provider } from '@pmail/core/transport/types.ts';

export interface MessageRow {
  rowid: number;
  id: MessageId;
  thread_seq: number;
  direction: 'inbound' | 'outbound';
  status: MessageStatus;
  status_reason: StatusReason | null;
  rfc_message_id: string | null;
  /** 1 when we made the id up, because the mail had none. */
  message_id_synthetic: number;
  provider: Provider | null;
  provider_message_id: string | null;
  in_reply_to: string | null;
  references_json: string;
  raw_sha256: string | null;
  raw_r2_key: string | null;
  raw_size: number | null;
  from_address: string | null;
  from_name: string | null;
  reply_to_json: string;
  to_json: string;
  cc_json: string;
  bcc_json: string;
  delivered_to: string | null;
  is_bcc: number;
  is_primary_recipient: number;
  subject: string | null;
  text: string | null;
  html_sanitized: string | null;
  extracted_text: string | null;
  snippet: string | null;
  sent_at: number | null;
  received_at: number;
  kind: OutboundKind | InboundKind;
  auth_json: string | null;
  verdict: TrustResource['verdict'] | null;
  spam_score: number | null;
  known_sender: number | null;
  quarantine_reason: string | null;
  flags_json: string;
  read: number;
  operation: SendOperation | null;
  metadata_json: string;
  hop: number;
  /** Whether a transport has taken it, or a person or event said so. */
  accepted: number;
}

export interface DeliveryRow {
  message_rowid: number;
  address: string;
  field: RecipientField;
  status: DeliveryStatus;
  smtp_code: string | null;
  enhanced_code: string | null;
  smtp_response: string | null;
  bounce_type: BounceType | null;
  updated_at: number;
  position: number;
  /** When the report was made that its details come from, by the provider's clock. */
  reported_at: number | null;
}

export interface AttachmentRow {
  id: AttachmentId;
  message_rowid: number;
  filename: string | null;
  content_type: string;
  size: number;
  disposition: 'attachment' | 'inline' | null;
  content_id: string | null;
  text_status: AttachmentResource['text_status'];
  text_pages: number | null;
  risk: string | null;
}

/** A message with what stands beside it in other tables. */
export interface MessageParts {
  row: MessageRow;
  thread_id: ThreadId;
  deliveries: DeliveryRow[];
  labels: string[];
  attachments: AttachmentRow[];
}

/** Which of the larger parts of a message an answer carries. */
export interface Include {
  text: boolean;
  html: boolean;
}

export function parseJson<T>(text: string): T {
  return JSON.parse(text) as T;
}

const isUncertain = ({ status }: DeliveryRow): boolean => status === 'uncertain';

export function messageResource(owner: Owner, parts: MessageParts, include: Include): MessageResource {
  const { row } = parts;
  const outbound = row.direction === 'outbound';
  return {
    id: row.id,
    thread_id: parts.thread_id,
    identity_id: owner.identity_id,
    direction: row.direction,
    status: row.status,
    status_reason: row.status_reason,
    fix: row.status === 'uncertain' || parts.deliveries.some(isUncertain) ? UNCERTAIN_FIX : null,
    from: row.from_address === null ? null : { address: row.from_address, name: row.from_name ?? '' },
    to: parseJson<Mailbox[]>(row.to_json),
    cc: parseJson<Mailbox[]>(row.cc_json),
    bcc: parseJson<Mailbox[]>(row.bcc_json),
    reply_to: parseJson<Mailbox[]>(row.reply_to_json),
    delivered_to: row.delivered_to,
    is_primary_recipient: outbound ? null : row.is_primary_recipient === 1,
    subject: row.subject,
    sent_at: rfc3339OrNull(row.sent_at),
    received_at: rfc3339(row.received_at),
    extracted_text: row.extracted_text,
    text: include.text ? row.text : null,
    html: include.html ? row.html_sanitized : null,
    headers: null,
    attachments: parts.attachments.map(attachmentResource),
    labels: [...parts.labels].sort(),
    kind: row.kind,
    read: row.read === 1,
    operation: row.operation,
    trust: outbound ? null : trustResource(row),
    quarantine_reason: row.quarantine_reason,
    rfc_message_id: row.rfc_message_id,
    in_reply_to: row.in_reply_to,
    provider: row.provider,
    provider_message_id: row.provider_message_id,
    deliveries: outbound ? parts.deliveries.map(deliveryResource) : null,
    flags: parseJson<string[]>(row.flags_json).filter((flag) => !TRUST_FLAGS.includes(flag)),
    metadata: parseJson<Record<string, string>>(row.metadata_json),
  };
}

/** Flags that are shown with the trust of a message, not among its own. */
const TRUST_FLAGS: readonly string[] = [
  'hidden_text',
  'display_name_spoof',
  'lookalike_domain',
  'reply_to_mismatch',
  'thread_join_unverified',
];

interface AuthJson {
  spf?: { result?: string };
  dkim?: { result?: string }[];
  dmarc?: { result?: string };
  arc?: { result?: string };
}

export function trustResource(row: MessageRow): TrustResource {
  const auth = row.auth_json === null ? {} : parseJson<AuthJson>(row.auth_json);
  return {
    verdict: row.verdict ?? 'none',
    spf: auth.spf?.result ?? 'none',
    dkim: auth.dkim?.[0]?.result ?? 'none',
    dmarc: auth.dmarc?.result ?? 'none',
    arc: auth.arc?.result ?? 'none',
    known_sender: row.known_sender === 1,
    quarantined: row.status === 'quarantined',
    spam_score: row.spam_score,
    automated: ['dsn', 'mdn', 'list', 'automated'].includes(row.kind),
    flags: parseJson<string[]>(row.flags_json).filter((flag) => TRUST_FLAGS.includes(flag)),
  };
}

function deliveryResource(row: DeliveryRow): DeliveryResource {
  const { address, field, status, smtp_code, enhanced_code, smtp_response, bounce_type } = row;
  return {
    address,
    field,
    status,
    smtp_code,
    enhanced_code,
    smtp_response,
    bounce_type,
    updated_at: rfc3339(row.updated_at),
  };
}

function attachmentResource(row: AttachmentRow): AttachmentResource {
  const { id, filename, content_type, size, disposition, content_id, text_status, risk } = row;
  return { id, filename, content_type, size, disposition, content_id, text_status, pages: row.text_pages, risk };
}

export function messageSummary(parts: Pick<MessageParts, 'row' | 'thread_id' | 'labels'>): MessageSummary {
  const { row } = parts;
  return {
    id: row.id,
    thread_id: parts.thread_id,
    direction: row.direction,
    status: row.status,
    from: row.from_address === null ? null : { address: row.from_address, name: row.from_name ?? '' },
    to: parseJson<Mailbox[]>(row.to_json),
    cc: parseJson<Mailbox[]>(row.cc_json),
    delivered_to: row.delivered_to,
    is_primary_recipient: row.direction === 'outbound' ? null : row.is_primary_recipient === 1,
    subject: row.subject,
    sent_at: rfc3339OrNull(row.sent_at),
    received_at: rfc3339(row.received_at),
    kind: row.kind,
    labels: [...parts.labels].sort(),
    in_reply_to: row.in_reply_to,
    flags: parseJson<string[]>(row.flags_json).filter((flag) => !TRUST_FLAGS.includes(flag)),
  };
}
