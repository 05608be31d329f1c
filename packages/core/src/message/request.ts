import type { Json } from '../canonical-json.ts';
import { canonicalJson } from '../canonical-json.ts';
import { sha256Hex } from '../hash.ts';

export const SEND_OPERATIONS = ['send', 'reply', 'reply_all', 'forward'] as const;
export type SendOperation = (typeof SEND_OPERATIONS)[number];

export const OUTBOUND_KINDS = ['transactional', 'marketing', 'auto_reply'] as const;
export type OutboundKind = (typeof OUTBOUND_KINDS)[number];

export const INBOUND_KINDS = ['normal', 'automated', 'dsn', 'list', 'calendar', 'mdn'] as const;
export type InboundKind = (typeof INBOUND_KINDS)[number];

export type RecipientInput = string | { address: string; name?: string | undefined };

export interface AttachmentInput {
  filename: string;
  content_type: string;
  content_base64: string;
  disposition?: 'attachment' | 'inline' | undefined;
  content_id?: string | undefined;
}

/** Body of a send, reply, reply-all or forward after its shape was checked; fields an operation does not take are absent. */
export interface SendBody {
  to?: RecipientInput[] | undefined;
  cc?: RecipientInput[] | undefined;
  bcc?: RecipientInput[] | undefined;
  subject?: string | undefined;
  text?: string | undefined;
  html?: string | undefined;
  attachments?: AttachmentInput[] | undefined;
  kind?: OutboundKind | undefined;
  unsubscribe?: { url: string; mailto?: string | undefined } | undefined;
  consent?: { basis: string; recorded_at: string } | undefined;
  thread_id?: string | undefined;
  from_address?: string | undefined;
  labels?: string[] | undefined;
  headers?: Record<string, string> | undefined;
  metadata?: Record<string, string> | undefined;
  include_attachments?: boolean | undefined;
}

/**
 * Fingerprint of a send: hex SHA-256 over the canonical JSON of body, operation and target. The body is taken as it
 * was received, so only white space and the order of keys do not matter.
 *
 * @param target the identity id for a send, `{identity id}/{message id}` for the others
 */
export function sendFingerprint(operation: SendOperation, target: string, body: Json): Promise<string> {
  return sha256Hex(canonicalJson({ body, operation, target }));
}

/** What an `Idempotency-Key` may look like; the empty string and anything beyond printable ASCII is refused. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7E]{1,255}$/;
