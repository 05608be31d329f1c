import { type Address, withoutDetail } from '@pmail/core/address/address.ts';
import type { MessageId, ThreadId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { boundHeaders } from '@pmail/core/message/bound-headers.ts';
import type { InboundKind } from '@pmail/core/message/request.ts';
import { cutUtf8, snippetOf } from '@pmail/core/message/text.ts';
import { inboundAttachmentKey } from '@pmail/core/storage/keys.ts';
import { normalizeSubject } from '@pmail/core/threading/subject.ts';
import type { TokenCheck } from '@pmail/core/threading/token.ts';
import type { ParsedMail } from '../parsed-mail.ts';
import type { Sql } from '../sql.ts';
import { insertAttachments, type StoredAttachment } from './attachments.ts';
import { countContact, hasWrittenTo } from './contacts.ts';
import { emit } from './events.ts';
import { indexMessage } from './fts.ts';
import { findMessage, partsOf } from './messages.ts';
import { oweQuota, payQuota } from './quota-tasks.ts';
import { type AttachmentRow, messageSummary, trustResource } from './rows.ts';
import { createThread, isParticipant, takeThreadSeq, touchThread } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/** Mail that arrived for this identity, parsed by the consumer. */
export interface IngestRequest {
  message_id: MessageId;
  r2_key: string;
  raw_size: number;
  raw_sha256: string;
  /** With `+detail`. */
  envelope_to: Address;
  /** What its detail proves of the thread the mail belongs to. */
  token: TokenCheck;
  received_at: number;
  /** All addresses of the identity, in any state. */
  own_addresses: Address[];
  webhook_text_bytes: number;
  /** The message of a test tenant this is a copy of. */
  loopback: { message_id: MessageId; same_mailbox: boolean } | null;
  parsed: Omit<ParsedMail, 'attachments' | 'auto_submitted'> & { kind: InboundKind; attachments: IngestAttachment[] };
}

export type IngestAttachment = Omit<StoredAttachment, 'r2_key'>;

export interface IngestAnswer {
  message_id: MessageId;
  thread_id: ThreadId;
  duplicate: boolean;
  /** Where the bytes of each attachment belong, in the order of the request; on a repeat those of the first time. */
  attachments: { r2_key: string }[];
}

/** Stores, threads and announces one arrived message. The same bytes again are the same message. */
export async function ingest(world: MailboxWorld, request: IngestRequest): Promise<IngestAnswer> {
  world.mark('inbound.start');
  const answer = world.sql.transaction(() => store(world, request));
  await payQuota(world);
  return answer;
}

function store(world: MailboxWorld, request: IngestRequest): IngestAnswer {
  const { sql } = world;
  const { headers: parsed, cut } = boundHeaders(request.parsed);
  const known = sql.first<{ id: MessageId }>(
    "SELECT id FROM messages WHERE direction = 'inbound' AND raw_sha256 = ? LIMIT 1",
    request.raw_sha256,
  );
  if (known !== undefined) return repeat(world, known.id);
  const own = new Set(request.own_addresses);
  const deliveredTo = withoutDetail(request.envelope_to);
  const isBcc = ![...request.parsed.to, ...request.parsed.cc].some(
    ({ address }) => withoutDetail(address) === deliveredTo,
  );
  const match = matchThread(world, request);
  const seq = match.seq ?? newThread(world, request, isBcc ? null : deliveredTo);
  const flags = [...(isBcc ? ['bcc'] : []), ...(match.unverified ? ['thread_join_unverified'] : [])];
  const stored = { ...request, parsed: { ...parsed, parse_degraded: parsed.parse_degraded || cut } };
  const rowid = insertMessage(world, stored, seq, deliveredTo, flags);
  insertAttachments(
    sql,
    rowid,
    parsed.attachments.map((file) => ({
      ...file,
      r2_key: inboundAttachmentKey(world.owner, request.message_id, file.id),
    })),
  );
  const row = findMessage(sql, request.message_id);
  if (row === undefined) throw new Error('message not stored');
  const people = [...(parsed.from === null ? [] : [parsed.from]), ...parsed.to, ...parsed.cc];
  const names = parsed.attachments.map(({ filename }) => filename ?? '');
  indexMessage(
    sql,
    row,
    people.map(({ address, name }) => `${name} ${address}`),
    names,
  );
  touchThread(sql, {
    seq,
    at: request.received_at,
    direction: 'inbound',
    people,
    own,
    snippet: row.snippet ?? '',
    unread: true,
    visible: true,
  });
  if (!isBcc && own.has(deliveredTo)) {
    sql.run('UPDATE threads SET reply_from_address = ? WHERE seq = ? AND fallback_pinned = 0', deliveredTo, seq);
  }
  if (parsed.from !== null) countContact(sql, parsed.from, 'inbound', request.received_at, seq);
  oweQuota(world, {
    op: 'usage',
    ref: request.message_id,
    identity_id: world.owner.identity_id,
    metric: 'inbound',
    amount: 1,
  });
  announce(world, request);
  world.mark('inbound.in_transaction');
  const parts = partsOf(sql, row);
  return {
    message_id: row.id,
    thread_id: parts.thread_id,
    duplicate: false,
    attachments: parts.attachments.map(({ id }) => ({ r2_key: inboundAttachmentKey(world.owner, row.id, id) })),
  };
}

function repeat(world: MailboxWorld, id: MessageId): IngestAnswer {
  const row = findMessage(world.sql, id);
  if (row === undefined) throw new Error('message vanished');
  const parts = partsOf(world.sql, row);
  return {
    message_id: id,
    thread_id: parts.thread_id,
    duplicate: true,
    attachments: parts.attachments.map(({ id: att }) => ({ r2_key: inboundAttachmentKey(world.owner, id, att) })),
  };
}

const REFERENCES_LOOKED_UP_MAX = 50;

interface ThreadMatch {
  seq: number | undefined;
  /** The mail came with a token that somebody else may have got hold of, or made up. */
  unverified: boolean;
}

/**
 * The thread an arrived message belongs to: by the token of the address it was sent to, then by what In-Reply-To and
 * References name. A token files mail and proves nothing about who holds it, so a stranger's is marked.
 */
function matchThread(world: MailboxWorld, request: IngestRequest): ThreadMatch {
  const { sql } = world;
  const { token, loopback } = request;
  // Mail an identity sends to itself stays beside what it sent.
  if (loopback?.same_mailbox) {
    const sent = findMessage(sql, loopback.message_id);
    if (sent !== undefined) return { seq: sent.thread_seq, unverified: false };
  }
  const byHeaders = threadByHeaders(sql, request.parsed);
  if (token.kind !== 'valid' || sql.first('SELECT 1 FROM threads WHERE seq = ?', token.seq) === undefined) {
    return { seq: byHeaders, unverified: token.kind === 'invalid' };
  }
  const { from } = request.parsed;
  const expected = byHeaders === token.seq || (from !== null && isParticipant(sql, token.seq, from.address));
  return { seq: token.seq, unverified: !expected };
}

function threadByHeaders(sql: Sql, { in_reply_to, references }: IngestRequest['parsed']): number | undefined {
  for (const id of [...in_reply_to, ...references.toReversed().slice(0, REFERENCES_LOOKED_UP_MAX)]) {
    const found =
      sql.first<{ thread_seq: number }>(
        'SELECT thread_seq FROM messages WHERE rfc_message_id = ? ORDER BY rowid DESC LIMIT 1',
        id,
      ) ??
      sql.first<{ thread_seq: number }>(
        "SELECT thread_seq FROM messages WHERE direction = 'outbound' AND provider_message_id = ? ORDER BY rowid DESC LIMIT 1",
        id,
      ) ??
      sql.first<{ thread_seq: number }>(
        'SELECT m.thread_seq FROM message_aliases a JOIN messages m ON m.rowid = a.message_rowid WHERE a.alias = ?',
        id,
      );
    if (found !== undefined) return found.thread_seq;
  }
  return undefined;
}

function newThread(world: MailboxWorld, request: IngestRequest, replyFrom: Address | null): number {
  const seq = takeThreadSeq(world);
  createThread(world.sql, {
    seq,
    id: world.newId('thr', request.received_at),
    subject: normalizeSubject(request.parsed.subject),
    at: request.received_at,
    reply_from_address: replyFrom,
  });
  return seq;
}

function insertMessage(
  world: MailboxWorld,
  request: IngestRequest,
  seq: number,
  deliveredTo: Address,
  joined: string[],
): number {
  const { parsed } = request;
  const text = parsed.text === null ? null : cutUtf8(parsed.text, LIMITS.row_text_bytes_max);
  const html = parsed.html_sanitized === null ? null : cutUtf8(parsed.html_sanitized, LIMITS.row_html_bytes_max);
  const extracted = parsed.text === null ? null : cutUtf8(parsed.text, LIMITS.row_extracted_text_bytes_max);
  const flags = [
    ...joined,
    ...(request.loopback === null ? [] : ['loopback']),
    ...(parsed.parse_degraded ? ['parse_degraded'] : []),
    ...(text?.cut || html?.cut || extracted?.cut ? ['body_truncated'] : []),
  ];
  const known = parsed.from !== null && hasWrittenTo(world.sql, parsed.from.address);
  const row = world.sql.first<{ rowid: number }>(
    `INSERT INTO messages (id, thread_seq, direction, status, rfc_message_id, message_id_synthetic, in_reply_to,
       references_json, raw_sha256, raw_r2_key, raw_size, from_address, from_name, sender_domain, reply_to_json, to_json,
       cc_json, delivered_to, is_bcc, subject, text, html_sanitized, extracted_text, snippet, sent_at, received_at, kind,
       auth_json, verdict, known_sender, flags_json, hop)
     VALUES (?1, ?2, 'inbound', 'received', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
       ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)
     RETURNING rowid`,
    request.message_id,
    seq,
    parsed.rfc_message_id ?? `${request.raw_sha256}@synthetic.invalid`,
    parsed.rfc_message_id === null ? 1 : 0,
    parsed.in_reply_to[0] ?? null,
    JSON.stringify(parsed.references),
    request.raw_sha256,
    request.r2_key,
    request.raw_size,
    parsed.from?.address ?? null,
    parsed.from?.name ?? null,
    parsed.from === null ? null : parsed.from.address.slice(parsed.from.address.lastIndexOf('@') + 1),
    JSON.stringify(parsed.reply_to),
    JSON.stringify(parsed.to),
    JSON.stringify(parsed.cc),
    deliveredTo,
    joined.includes('bcc') ? 1 : 0,
    parsed.subject,
    text?.text ?? null,
    html?.text ?? null,
    extracted?.text ?? null,
    parsed.text === null ? null : snippetOf(parsed.text),
    parsed.sent_at ?? request.received_at,
    request.received_at,
    parsed.kind,
    request.loopback === null ? null : JSON.stringify({ source: 'loopback' }),
    request.loopback === null ? 'none' : 'pass',
    known ? 1 : 0,
    JSON.stringify(flags),
    parsed.hop,
  );
  if (row === undefined) throw new Error('message not inserted');
  return row.rowid;
}

function announce(world: MailboxWorld, request: IngestRequest): void {
  const row = findMessage(world.sql, request.message_id);
  if (row === undefined) throw new Error('message not stored');
  const parts = partsOf(world.sql, row);
  const extracted = cutUtf8(row.extracted_text ?? '', request.webhook_text_bytes);
  emit(world, 'message.received', {
    message: messageSummary(parts),
    thread_id: parts.thread_id,
    trust: trustResource(row),
    extracted_text: row.extracted_text === null ? null : extracted.text,
    extracted_text_truncated: extracted.cut,
    attachments: parts.attachments.map(({ id, filename, content_type, size }: AttachmentRow) => ({
      id,
      filename,
      content_type,
      size,
    })),
  });
}
