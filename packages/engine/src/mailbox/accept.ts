import type { Address } from '@pmail/core/address/address.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { cutUtf8, snippetOf } from '@pmail/core/message/text.ts';
import { filterText } from '@pmail/core/policy/filters.ts';
import { sentKey } from '@pmail/core/storage/keys.ts';
import { normalizeSubject } from '@pmail/core/threading/subject.ts';
import { setDeadlineNoLater } from '../alarms.ts';
import { writeMeta } from '../meta.ts';
import type { QuotaWarning } from '../quota/types.ts';
import { countContact } from './contacts.ts';
import { emit } from './events.ts';
import { indexMessage } from './fts.ts';
import { recordKey } from './ledger.ts';
import { findMessage, partsOf } from './messages.ts';
import type { PreparedSend } from './prepare.ts';
import { messageResource, messageSummary } from './rows.ts';
import { createThread, releaseLock, touchThread } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Writes an accepted send. Call inside the transaction that has checked the ledger and taken the lock: message,
 * deliveries, ledger, thread, contacts and the dispatch deadline stand or fall together.
 */
export function writeAcceptedSend(world: MailboxWorld, send: PreparedSend, warnings: QuotaWarning[]): MessageResource {
  const { sql } = world;
  const suppressed = send.plan.recipients.every(({ filtered }) => filtered !== null);
  const { seq } = send.thread;
  if (send.thread.is_new) {
    createThread(sql, {
      seq,
      id: send.thread.id,
      subject: normalizeSubject(send.subject_line),
      at: send.at,
      reply_from_address: send.from.address,
    });
  }
  const rowid = insertMessage(world, send, seq, suppressed);
  insertDeliveries(world, send, rowid);
  insertAttachments(world, send, rowid);
  const labels = [...new Set(send.request.body.labels ?? [])];
  for (const label of labels) sql.run('INSERT INTO labels (message_rowid, label) VALUES (?, ?)', rowid, label);
  const row = findMessage(sql, send.message_id);
  if (row === undefined) throw new Error('accepted message not stored');
  const recipients = send.plan.recipients;
  indexMessage(
    sql,
    row,
    [...recipients.map(({ address, name }) => `${name} ${address}`)],
    send.attachments.map(({ filename }) => filename),
  );
  const own = new Set<Address>(send.request.directory.addresses.map(({ address }) => address));
  touchThread(sql, {
    seq,
    at: send.at,
    direction: 'outbound',
    people: recipients.filter(({ field }) => field !== 'bcc'),
    own,
    snippet: row.snippet ?? '',
    unread: false,
    visible: true,
  });
  // Whom the policy kept the mail from has not been written to, and does not become known by it.
  const written = recipients.filter(({ filtered }) => filtered === null);
  for (const recipient of written) countContact(sql, recipient, 'outbound', send.at, seq);
  const parts = partsOf(sql, row);
  const message = messageResource(world.owner, parts, { text: false, html: false });
  recordKey(sql, {
    key_hash: send.request.key_hash,
    fingerprint: send.request.fingerprint,
    operation: send.request.operation,
    message,
    now: send.at,
  });
  if (suppressed) {
    // Nothing of it will leave, so nobody has to wait for it.
    releaseLock(sql, seq, message.id);
    emit(world, 'message.suppressed', {
      message_id: message.id,
      recipients: recipients.map(({ address, filtered }) => ({ address, reason: filtered })),
      message: messageSummary(parts),
    });
  } else {
    writeMeta(sql, `dispatch:${message.id}`, String(send.at));
    setDeadlineNoLater(world, 'dispatch', send.at + world.waits.dispatch_after_ms);
  }
  for (const { scope, percent, used, limit } of warnings) {
    emit(world, 'quota.warning', { metric: 'sends', scope, percent, used, limit });
  }
  return message;
}

function insertMessage(world: MailboxWorld, send: PreparedSend, seq: number, suppressed: boolean): number {
  const { composed, plan } = send;
  const text = composed.text === null ? null : cutUtf8(composed.text, LIMITS.row_text_bytes_max);
  const html = composed.html_sanitized === null ? null : cutUtf8(composed.html_sanitized, LIMITS.row_html_bytes_max);
  const extracted = composed.text === null ? null : cutUtf8(composed.text, LIMITS.row_extracted_text_bytes_max);
  const flags = text?.cut || html?.cut || extracted?.cut ? ['body_truncated'] : [];
  const list = (field: 'to' | 'cc' | 'bcc'): string =>
    JSON.stringify(plan.recipients.filter((to) => to.field === field).map(({ address, name }) => ({ address, name })));
  const row = world.sql.first<{ rowid: number }>(
    `INSERT INTO messages (id, thread_seq, direction, status, raw_r2_key, raw_size, raw_sha256, rfc_message_id,
       from_address, from_name, sender_domain, reply_to_json, to_json, cc_json, bcc_json, subject, text, html_sanitized,
       extracted_text, snippet, sent_at, received_at, kind, flags_json, operation, in_reply_to, references_json,
       metadata_json, hop, read)
     VALUES (?1, ?2, 'outbound', ?3, ?4, ?5, ?6, NULL, ?7, ?8, ?9, ?26, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?18,
       ?19, ?20, ?21, ?22, ?23, ?24, ?25, 1)
     RETURNING rowid`,
    send.message_id,
    seq,
    suppressed ? 'suppressed' : 'queued',
    sentKey(world.owner, send.message_id),
    composed.mime.length,
    send.mime_sha256,
    send.from.address,
    send.from.name,
    plan.from.domain.name,
    list('to'),
    list('cc'),
    list('bcc'),
    send.subject_line,
    text?.text ?? null,
    html?.text ?? null,
    extracted?.text ?? null,
    composed.text === null ? null : snippetOf(composed.text),
    send.at,
    plan.kind,
    JSON.stringify(flags),
    send.request.operation,
    send.in_reply_to,
    JSON.stringify(send.references),
    JSON.stringify(send.request.body.metadata ?? {}),
    plan.hop,
    JSON.stringify(send.reply_to === null ? [] : [send.reply_to]),
  );
  if (row === undefined) throw new Error('message not inserted');
  return row.rowid;
}

function insertDeliveries(world: MailboxWorld, send: PreparedSend, rowid: number): void {
  send.plan.recipients.forEach(({ address, field, filtered }, position) => {
    world.sql.run(
      `INSERT INTO deliveries (message_rowid, address, field, status, smtp_response, updated_at, position)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      rowid,
      address,
      field,
      filtered === null ? 'queued' : 'suppressed',
      filtered === null ? null : filterText(filtered),
      send.at,
      position,
    );
  });
}

function insertAttachments(world: MailboxWorld, send: PreparedSend, rowid: number): void {
  send.attachments.forEach((attachment, position) => {
    world.sql.run(
      `INSERT INTO attachments (id, message_rowid, filename, content_type, size, sha256, disposition, content_id,
         r2_key, text_status, position)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'skipped', ?)`,
      attachment.id,
      rowid,
      attachment.filename,
      attachment.content_type,
      attachment.content.length,
      attachment.sha256,
      attachment.disposition,
      attachment.content_id,
      attachment.r2_key,
      position,
    );
  });
}
