import type { Address, Mailbox } from '@pmail/core/address/address.ts';
import { domainOf } from '@pmail/core/address/address.ts';
import { bodyAsRead } from '@pmail/core/compose/bodies.ts';
import type { DeliveryStatus, StatusReason } from '@pmail/core/delivery/status.ts';
import type { MessageId, ThreadId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { OutboundKind, SendOperation } from '@pmail/core/message/request.ts';
import { cutUtf8, snippetOf } from '@pmail/core/message/text.ts';
import { filterText } from '@pmail/core/policy/filters.ts';
import type { FilterReason, RecipientField } from '@pmail/core/policy/types.ts';
import { sentKey } from '@pmail/core/storage/keys.ts';
import { normalizeSubject } from '@pmail/core/threading/subject.ts';
import { insertAttachments, type StoredAttachment } from './attachments.ts';
import { countContact } from './contacts.ts';
import { indexMessage } from './fts.ts';
import { findMessage } from './messages.ts';
import type { MessageRow } from './rows.ts';
import { createThread, touchThread } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/** A composed message of this identity with all that its rows hold, however it came to be known. */
export interface SentMail {
  message_id: MessageId;
  thread: { seq: number; id: ThreadId; is_new: boolean };
  /** Unix ms of acceptance. */
  at: number;
  operation: SendOperation;
  kind: OutboundKind;
  hop: number;
  from: Mailbox;
  reply_to: Mailbox | null;
  subject: string;
  in_reply_to: string | null;
  references: string[];
  text: string | null;
  html_sanitized: string | null;
  mime_bytes: number;
  mime_sha256: string;
  recipients: (Mailbox & { field: RecipientField; filtered: FilterReason | null })[];
  attachments: (StoredAttachment & { filename: string })[];
  labels: string[];
  metadata: Record<string, string>;
  /** Addresses of the identity, which are no participants of its threads. */
  own_addresses: Address[];
}

/** In which state the mail is stored. Recipients whom the policy kept it from are `suppressed` in any. */
export interface StoredState {
  status: Extract<DeliveryStatus, 'queued' | 'uncertain'>;
  reason: StatusReason | null;
  flags: string[];
}

/** Writes the rows of an outbound message: thread, message, deliveries, attachments, contacts. Call inside a transaction. */
export function storeSend(world: MailboxWorld, send: SentMail, state: StoredState): MessageRow {
  const { sql } = world;
  const { seq } = send.thread;
  if (send.thread.is_new) {
    createThread(sql, {
      seq,
      id: send.thread.id,
      subject: normalizeSubject(send.subject),
      at: send.at,
      reply_from_address: send.from.address,
    });
  }
  const rowid = insertMessage(world, send, state);
  insertDeliveries(world, send, rowid, state);
  insertAttachments(sql, rowid, send.attachments);
  for (const label of send.labels) sql.run('INSERT INTO labels (message_rowid, label) VALUES (?, ?)', rowid, label);
  const row = findMessage(sql, send.message_id);
  if (row === undefined) throw new Error('message not stored');
  indexMessage(
    sql,
    row,
    send.recipients.map(({ address, name }) => `${name} ${address}`),
    send.attachments.map(({ filename }) => filename),
  );
  touchThread(sql, {
    seq,
    at: send.at,
    direction: 'outbound',
    people: send.recipients.filter(({ field }) => field !== 'bcc'),
    own: new Set(send.own_addresses),
    snippet: row.snippet ?? '',
    unread: false,
    visible: true,
  });
  // Whom the policy kept the mail from has not been written to, and does not become known by it.
  const written = send.recipients.filter(({ filtered }) => filtered === null);
  for (const recipient of written) countContact(sql, recipient, 'outbound', send.at, seq);
  return row;
}

/** Whether the policy keeps the mail from everybody. */
export function isFiltered({ recipients }: Pick<SentMail, 'recipients'>): boolean {
  return recipients.every(({ filtered }) => filtered !== null);
}

function insertMessage(world: MailboxWorld, send: SentMail, state: StoredState): number {
  const body = bodyAsRead(send.text);
  const text = body === null ? null : cutUtf8(body, LIMITS.row_text_bytes_max);
  const html = send.html_sanitized === null ? null : cutUtf8(send.html_sanitized, LIMITS.row_html_bytes_max);
  const extracted = body === null ? null : cutUtf8(body, LIMITS.row_extracted_text_bytes_max);
  const cut = text?.cut || html?.cut || extracted?.cut;
  const list = (field: RecipientField): string =>
    JSON.stringify(send.recipients.filter((to) => to.field === field).map(({ address, name }) => ({ address, name })));
  const filtered = isFiltered(send);
  const row = world.sql.first<{ rowid: number }>(
    `INSERT INTO messages (id, thread_seq, direction, status, raw_r2_key, raw_size, raw_sha256, rfc_message_id,
       from_address, from_name, sender_domain, reply_to_json, to_json, cc_json, bcc_json, subject, text, html_sanitized,
       extracted_text, snippet, sent_at, received_at, kind, flags_json, operation, in_reply_to, references_json,
       metadata_json, hop, read, status_reason)
     VALUES (?1, ?2, 'outbound', ?3, ?4, ?5, ?6, NULL, ?7, ?8, ?9, ?26, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?18,
       ?19, ?20, ?21, ?22, ?23, ?24, ?25, 1, ?27)
     RETURNING rowid`,
    send.message_id,
    send.thread.seq,
    filtered ? 'suppressed' : state.status,
    sentKey(world.owner, send.message_id),
    send.mime_bytes,
    send.mime_sha256,
    send.from.address,
    send.from.name,
    domainOf(send.from.address),
    list('to'),
    list('cc'),
    list('bcc'),
    send.subject,
    text?.text ?? null,
    html?.text ?? null,
    extracted?.text ?? null,
    body === null ? null : snippetOf(body),
    send.at,
    send.kind,
    JSON.stringify([...state.flags, ...(cut ? ['body_truncated'] : [])]),
    send.operation,
    send.in_reply_to,
    JSON.stringify(send.references),
    JSON.stringify(send.metadata),
    send.hop,
    JSON.stringify(send.reply_to === null ? [] : [send.reply_to]),
    filtered ? null : state.reason,
  );
  if (row === undefined) throw new Error('message not inserted');
  return row.rowid;
}

function insertDeliveries(world: MailboxWorld, send: SentMail, rowid: number, { status }: StoredState): void {
  send.recipients.forEach(({ address, field, filtered }, position) => {
    world.sql.run(
      `INSERT INTO deliveries (message_rowid, address, field, status, smtp_response, updated_at, position)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      rowid,
      address,
      field,
      filtered === null ? status : 'suppressed',
      filtered === null ? null : filterText(filtered),
      send.at,
      position,
    );
  });
}
