import type { Mailbox } from '@pmail/core/address/address.ts';
import type { MessageStatus } from '@pmail/core/delivery/status.ts';
import type { AttachmentId, MessageId, ThreadId } from '@pmail/core/ids.ts';
import type { MessageResource, ThreadResource } from '@pmail/core/message/resource.ts';
import { rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { Sql, SqlValue } from '../sql.ts';
import { type AttemptRow, attemptsOf } from './attempts.ts';
import { keywordQuery } from './fts.ts';
import { findMessage, partsOf, withParts } from './messages.ts';
import { type Include, type MessageRow, messageResource, parseJson } from './rows.ts';
import { findThread, type ThreadRow } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/** Place in a list after which the next page begins. */
export interface Position {
  at: number;
  id: string;
}

export interface Page<T> {
  items: T[];
  /** Null at the end of the list. */
  next: Position | null;
}

/** Mail held back from agents; shown only to a key that may review it and asks for the status by name. */
const HELD: readonly MessageStatus[] = ['quarantined', 'hidden', 'throttled'];

export interface MessageFilter {
  thread_id?: ThreadId | undefined;
  direction?: 'inbound' | 'outbound' | undefined;
  status?: MessageStatus | undefined;
  label?: string | undefined;
  /** Unix ms, both exclusive. */
  after?: number | undefined;
  before?: number | undefined;
  q?: string | undefined;
}

export function getMessage(
  world: MailboxWorld,
  id: MessageId,
  include: Include,
  canReview: boolean,
): MessageResource | undefined {
  const row = visible(world.sql, id, canReview);
  return row === undefined ? undefined : messageResource(world.owner, partsOf(world.sql, row), include);
}

function visible(sql: Sql, id: MessageId, canReview: boolean): MessageRow | undefined {
  const row = findMessage(sql, id);
  return row === undefined || (HELD.includes(row.status) && !canReview) ? undefined : row;
}

/** Newest first by time received, then id. */
export function listMessages(
  world: MailboxWorld,
  filter: MessageFilter,
  limit: number,
  after: Position | null,
  canReview: boolean,
): Page<MessageResource> {
  const where: string[] = [];
  const values: SqlValue[] = [];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (filter.status !== undefined) {
    if (HELD.includes(filter.status) && !canReview) return { items: [], next: null };
    add('status = ?', filter.status);
  } else add("status NOT IN ('quarantined', 'hidden', 'throttled')");
  if (filter.thread_id !== undefined) add('thread_seq = (SELECT seq FROM threads WHERE id = ?)', filter.thread_id);
  if (filter.direction !== undefined) add('direction = ?', filter.direction);
  if (filter.label !== undefined) add('rowid IN (SELECT message_rowid FROM labels WHERE label = ?)', filter.label);
  if (filter.after !== undefined) add('received_at > ?', filter.after);
  if (filter.before !== undefined) add('received_at < ?', filter.before);
  if (filter.q !== undefined) {
    const query = keywordQuery(filter.q);
    if (query === undefined) return { items: [], next: null };
    add('rowid IN (SELECT rowid FROM fts WHERE fts MATCH ?)', query);
  }
  if (after !== null) add('(received_at, id) < (?, ?)', after.at, after.id);
  const rows = world.sql.all<MessageRow>(
    `SELECT * FROM messages WHERE ${where.join(' AND ')} ORDER BY received_at DESC, id DESC LIMIT ?`,
    ...values,
    limit + 1,
  );
  return page(
    rows,
    limit,
    (row) => ({ at: row.received_at, id: row.id }),
    (shown) =>
      withParts(world.sql, shown).map((parts) => messageResource(world.owner, parts, { text: false, html: false })),
  );
}

function page<R, T>(rows: R[], limit: number, position: (row: R) => Position, convert: (rows: R[]) => T[]): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { items: convert(shown), next: rows.length > limit && last !== undefined ? position(last) : null };
}

export interface ThreadFilter {
  label?: string | undefined;
  is_unread?: boolean | undefined;
  direction?: 'inbound' | 'outbound' | undefined;
  archived: boolean;
  after?: number | undefined;
  before?: number | undefined;
}

/** Latest activity first. A thread that holds only held-back mail has no visible message and is left out. */
export function listThreads(
  world: MailboxWorld,
  filter: ThreadFilter,
  limit: number,
  after: Position | null,
): Page<ThreadResource> {
  const where = ['message_count > 0', 'archived = ?'];
  const values: SqlValue[] = [filter.archived ? 1 : 0];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (filter.is_unread !== undefined) add(filter.is_unread ? 'unread_count > 0' : 'unread_count = 0');
  if (filter.direction !== undefined) add('last_direction = ?', filter.direction);
  if (filter.label !== undefined) {
    add(
      `EXISTS (SELECT 1 FROM messages m JOIN labels l ON l.message_rowid = m.rowid
               WHERE m.thread_seq = threads.seq AND l.label = ?)`,
      filter.label,
    );
  }
  if (filter.after !== undefined) add('last_at > ?', filter.after);
  if (filter.before !== undefined) add('last_at < ?', filter.before);
  if (after !== null) add('(last_at, id) < (?, ?)', after.at, after.id);
  const rows = world.sql.all<ThreadRow>(
    `SELECT * FROM threads WHERE ${where.join(' AND ')} ORDER BY last_at DESC, id DESC LIMIT ?`,
    ...values,
    limit + 1,
  );
  return page(
    rows,
    limit,
    (row) => ({ at: row.last_at, id: row.id }),
    (shown) => shown.map((row) => threadResource(world.sql, row)),
  );
}

function threadResource(sql: Sql, row: ThreadRow): ThreadResource {
  const labels = sql.all<{ label: string }>(
    `SELECT DISTINCT l.label FROM labels l JOIN messages m ON m.rowid = l.message_rowid
     WHERE m.thread_seq = ? AND m.status NOT IN ('quarantined', 'hidden', 'throttled') ORDER BY l.label`,
    row.seq,
  );
  return {
    id: row.id,
    subject: row.subject,
    participants: parseJson<Mailbox[]>(row.participants_json),
    message_count: row.message_count,
    unread_count: row.unread_count,
    first_at: rfc3339(row.first_at),
    last_at: rfc3339(row.last_at),
    last_inbound_at: rfc3339OrNull(row.last_inbound_at),
    last_direction: row.last_direction,
    snippet: row.snippet,
    labels: labels.map(({ label }) => label),
    archived: row.archived === 1,
  };
}

export interface ThreadWithMessages {
  thread: ThreadResource;
  messages: Page<MessageResource>;
}

/** A thread and a page of its messages, oldest first. */
export function getThread(
  world: MailboxWorld,
  id: ThreadId,
  limit: number,
  after: Position | null,
  include: Include,
): ThreadWithMessages | undefined {
  const { sql } = world;
  const row = findThread(sql, id);
  if (row === undefined || row.message_count === 0) return undefined;
  const rows = sql.all<MessageRow>(
    `SELECT * FROM messages WHERE thread_seq = ?1 AND status NOT IN ('quarantined', 'hidden', 'throttled')
       AND (?2 IS NULL OR (received_at, id) > (?2, ?3)) ORDER BY received_at, id LIMIT ?4`,
    row.seq,
    after?.at ?? null,
    after?.id ?? null,
    limit + 1,
  );
  return {
    thread: threadResource(sql, row),
    messages: page(
      rows,
      limit,
      (message) => ({ at: message.received_at, id: message.id }),
      (shown) => withParts(sql, shown).map((parts) => messageResource(world.owner, parts, include)),
    ),
  };
}

/** Where the stored copy of a message lies, for download; undefined when it is not there for this caller. */
export function rawLocation(world: MailboxWorld, id: MessageId, canReview: boolean): string | null | undefined {
  const row = visible(world.sql, id, canReview);
  return row === undefined ? undefined : row.raw_r2_key;
}

export interface AttachmentLocation {
  r2_key: string;
  filename: string | null;
  content_type: string;
  size: number;
  risk: string | null;
  received_at: number;
}

export function attachmentLocation(
  world: MailboxWorld,
  messageId: MessageId,
  attachmentId: AttachmentId,
  canReview: boolean,
): AttachmentLocation | undefined {
  const row = visible(world.sql, messageId, canReview);
  if (row === undefined) return undefined;
  const found = world.sql.first<AttachmentLocation>(
    'SELECT r2_key, filename, content_type, size, risk FROM attachments WHERE id = ? AND message_rowid = ?',
    attachmentId,
    row.rowid,
  );
  return found === undefined ? undefined : { ...found, received_at: row.received_at };
}

/** The transport calls of a message, for an operator or a test. */
export function listAttempts(world: MailboxWorld, id: MessageId): AttemptRow[] {
  const row = findMessage(world.sql, id);
  return row === undefined ? [] : attemptsOf(world.sql, row.rowid);
}
