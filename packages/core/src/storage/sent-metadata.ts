import type { Mailbox } from '../address/address.ts';
import { utf8Length } from '../hash.ts';
import { type IdentityId, idTime, type MessageId, parseId, type TenantId, type ThreadId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { OUTBOUND_KINDS, type OutboundKind, SEND_OPERATIONS, type SendOperation } from '../message/request.ts';
import type { FilterReason } from '../policy/types.ts';
import type { Owner } from './keys.ts';

/**
 * What stands beside a sent copy in the object store, as its metadata: all that the copy itself does not say and that a
 * mailbox needs to know the send again after its storage was put back to an earlier time.
 */
export interface SentEvidence {
  message_id: MessageId;
  /** Unix ms at which it was accepted. Its id says another when the clock had been put back shortly before. */
  at: number;
  /** Hex SHA-256 of the Idempotency-Key. */
  key_hash: string;
  fingerprint: string;
  /** Of the copy's bytes; null for one that was stored before it was noted. */
  sha256: string | null;
  operation: SendOperation;
  thread: { id: ThreadId; seq: number };
  kind: OutboundKind;
  /** The copy has no Bcc header. */
  bcc: Mailbox[];
  /** Recipients whom the policy kept the mail from, by their place among To, Cc and Bcc. */
  filtered: { position: number; reason: FilterReason }[];
  labels: string[];
  metadata: Record<string, string>;
}

/**
 * As text of ASCII only, because stores carry metadata in HTTP headers. Lists that would not fit are cut at the end,
 * the caller's own metadata is left out whole.
 */
export function sentMetadata(owner: Owner, evidence: SentEvidence): Record<string, string> {
  const { bcc, filtered, labels, metadata } = evidence;
  const own = asciiJson(metadata);
  const optional = {
    bcc: fitting(
      bcc.map(({ address, name }) => [address, name]),
      LIMITS.sent_metadata_bcc_bytes_max,
    ),
    filtered: fitting(
      filtered.map(({ position, reason }) => [position, reason]),
      LIMITS.sent_metadata_filtered_bytes_max,
    ),
    labels: fitting(labels, LIMITS.sent_metadata_labels_bytes_max),
    metadata: own.length > LIMITS.sent_metadata_own_bytes_max ? '{}' : own,
  };
  return {
    tenant: owner.tenant_id,
    identity: owner.identity_id,
    message: evidence.message_id,
    at: String(evidence.at),
    idem_key_sha256: evidence.key_hash,
    fingerprint: evidence.fingerprint,
    ...(evidence.sha256 === null ? {} : { sha256: evidence.sha256 }),
    operation: evidence.operation,
    kind: evidence.kind,
    thread: evidence.thread.id,
    thread_seq: String(evidence.thread.seq),
    ...Object.fromEntries(Object.entries(optional).filter(([, text]) => text !== '[]' && text !== '{}')),
  };
}

/** Reads it back; undefined when the object is not a sent copy of this owner. */
export function parseSentMetadata(owner: Owner, stored: Record<string, string>): SentEvidence | undefined {
  const messageId = parseId('msg', stored['message'] ?? '');
  const threadId = parseId('thr', stored['thread'] ?? '');
  const seq = Number(stored['thread_seq']);
  // Copies of before do not say it.
  const at = stored['at'] === undefined && messageId !== undefined ? idTime(messageId) : Number(stored['at']);
  const { idem_key_sha256: keyHash, fingerprint, operation, kind } = stored;
  const whole =
    messageId !== undefined &&
    Number.isSafeInteger(at) &&
    threadId !== undefined &&
    Number.isSafeInteger(seq) &&
    seq > 0 &&
    keyHash !== undefined &&
    fingerprint !== undefined &&
    SEND_OPERATIONS.includes(operation as SendOperation) &&
    OUTBOUND_KINDS.includes(kind as OutboundKind) &&
    (stored['tenant'] as TenantId) === owner.tenant_id &&
    (stored['identity'] as IdentityId) === owner.identity_id;
  if (!whole) return undefined;
  return {
    message_id: messageId,
    at,
    key_hash: keyHash,
    fingerprint,
    sha256: stored['sha256'] ?? null,
    operation: operation as SendOperation,
    thread: { id: threadId, seq },
    kind: kind as OutboundKind,
    bcc: (read(stored['bcc']) as [string, string][]).map(([address, name]) => ({ address, name })),
    filtered: (read(stored['filtered']) as [number, FilterReason][]).map(([position, reason]) => ({
      position,
      reason,
    })),
    labels: read(stored['labels']) as string[],
    metadata: stored['metadata'] === undefined ? {} : (JSON.parse(stored['metadata']) as Record<string, string>),
  };
}

/** What is known of an attachment beside its bytes. */
export interface AttachmentEvidence {
  sha256: string;
  filename: string;
  content_type: string;
  disposition: 'attachment' | 'inline';
  content_id: string | null;
  position: number;
}

export function attachmentMetadata(
  owner: Owner,
  message: MessageId,
  evidence: AttachmentEvidence,
): Record<string, string> {
  return {
    tenant: owner.tenant_id,
    identity: owner.identity_id,
    message,
    sha256: evidence.sha256,
    part: asciiJson([
      evidence.filename,
      evidence.content_type,
      evidence.disposition,
      evidence.content_id,
      evidence.position,
    ]),
  };
}

export function parseAttachmentMetadata(stored: Record<string, string>): AttachmentEvidence | undefined {
  const { sha256, part } = stored;
  if (sha256 === undefined || part === undefined) return undefined;
  const [filename, contentType, disposition, contentId, position] = JSON.parse(part) as [
    string,
    string,
    AttachmentEvidence['disposition'],
    string | null,
    number,
  ];
  return { sha256, filename, content_type: contentType, disposition, content_id: contentId, position };
}

function fitting(list: unknown[], bytesMax: number): string {
  const kept = [...list];
  while (asciiJson(kept).length > bytesMax) kept.pop();
  return asciiJson(kept);
}

function asciiJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (utf8Length(text) === text.length) return text;
  return text.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function read(list: string | undefined): unknown[] {
  return list === undefined ? [] : (JSON.parse(list) as unknown[]);
}
