import { type Address, type Mailbox, withoutDetail } from '@pmail/core/address/address.ts';
import type { MessageId, ThreadId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { withoutToken } from '@pmail/core/threading/token.ts';
import type { Sql } from '../sql.ts';
import { parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

export interface ThreadRow {
  seq: number;
  id: ThreadId;
  subject: string;
  first_at: number;
  last_at: number;
  last_inbound_at: number | null;
  last_outbound_at: number | null;
  message_count: number;
  unread_count: number;
  participants_json: string;
  reply_from_address: Address | null;
  fallback_pinned: number;
  lock_owner: MessageId | null;
  lock_until: number | null;
  archived: number;
  last_direction: 'inbound' | 'outbound';
  snippet: string;
}

export function findThread(sql: Sql, id: ThreadId): ThreadRow | undefined {
  return sql.first<ThreadRow>('SELECT * FROM threads WHERE id = ?', id);
}

export function threadBySeq(sql: Sql, seq: number): ThreadRow {
  const row = sql.first<ThreadRow>('SELECT * FROM threads WHERE seq = ?', seq);
  if (row === undefined) throw new Error(`no thread ${seq}`);
  return row;
}

/**
 * A number for a thread that does not exist yet. Numbers are handed out in memory, because only one instance lives at a
 * time; one that is never used leaves a gap, which means nothing.
 */
export function takeThreadSeq(world: MailboxWorld): number {
  const { threadSeq, sql } = world;
  const last = sql.first<{ seq: number | null }>('SELECT MAX(seq) AS seq FROM threads')?.seq ?? 0;
  threadSeq.last = Math.max(threadSeq.last, last) + 1;
  return threadSeq.last;
}

export function createThread(
  sql: Sql,
  thread: { seq: number; id: ThreadId; subject: string; at: number; reply_from_address: Address | null },
): void {
  sql.run(
    'INSERT INTO threads (seq, id, subject, first_at, last_at, reply_from_address) VALUES (?, ?, ?, ?, ?, ?)',
    thread.seq,
    thread.id,
    thread.subject,
    thread.at,
    thread.at,
    thread.reply_from_address,
  );
}

/** What a new message changes about its thread. `people` are those it shows: From, To and Cc, never Bcc. */
export interface ThreadTouch {
  seq: number;
  at: number;
  direction: 'inbound' | 'outbound';
  people: Mailbox[];
  /** Addresses of this identity, which are not participants. */
  own: ReadonlySet<Address>;
  snippet: string;
  unread: boolean;
  /** Held mail is stored in the thread but counts and shows nothing. */
  visible: boolean;
}

export function touchThread(sql: Sql, touch: ThreadTouch): void {
  if (!touch.visible) return;
  const thread = threadBySeq(sql, touch.seq);
  const participants = mergeParticipants(parseJson<Mailbox[]>(thread.participants_json), touch.people, touch.own);
  const newest = touch.at >= thread.last_at;
  sql.run(
    `UPDATE threads SET last_at = MAX(last_at, ?1),
       last_inbound_at = CASE WHEN ?2 = 'inbound' THEN MAX(COALESCE(last_inbound_at, 0), ?1) ELSE last_inbound_at END,
       last_outbound_at = CASE WHEN ?2 = 'outbound' THEN MAX(COALESCE(last_outbound_at, 0), ?1) ELSE last_outbound_at END,
       last_direction = CASE WHEN ?3 = 1 THEN ?2 ELSE last_direction END,
       snippet = CASE WHEN ?3 = 1 THEN ?4 ELSE snippet END,
       message_count = message_count + 1, unread_count = unread_count + ?5, participants_json = ?6,
       archived = CASE WHEN ?2 = 'inbound' THEN 0 ELSE archived END
     WHERE seq = ?7`,
    touch.at,
    touch.direction,
    newest ? 1 : 0,
    touch.snippet,
    touch.unread ? 1 : 0,
    JSON.stringify(participants),
    touch.seq,
  );
}

/** Whether somebody takes part in a thread. The list shown is bounded, so those beyond it are found by their mail. */
export function isParticipant(sql: Sql, seq: number, address: Address): boolean {
  const listed = parseJson<Mailbox[]>(threadBySeq(sql, seq).participants_json);
  const shown = withoutToken(address);
  if (listed.some((person) => withoutToken(person.address) === shown)) return true;
  return (
    sql.first('SELECT 1 FROM messages WHERE thread_seq = ? AND from_address = ? LIMIT 1', seq, address) !== undefined
  );
}

/**
 * Participants in the order they first appeared, at most 50; the latest name that is not empty stays. An answer goes to an
 * address with the thread's token in it, ours or that of another mailbox like this: it is the same person, and the list
 * that is known may be of a time when it was written beside.
 */
export function mergeParticipants(known: Mailbox[], people: Mailbox[], own: ReadonlySet<Address>): Mailbox[] {
  const merged = new Map<Address, string>();
  for (const { address: written, name } of [...known, ...people]) {
    if (own.has(written) || own.has(withoutDetail(written))) continue;
    const address = withoutToken(written);
    const before = merged.get(address);
    if (before === undefined && merged.size >= LIMITS.participants_count_max) continue;
    merged.set(address, name === '' ? (before ?? '') : name.slice(0, LIMITS.display_name_chars_max));
  }
  return [...merged].map(([address, name]) => ({ address, name }));
}

/**
 * Takes the thread for a message, inside the transaction that found it free, expired or the message's own already. The
 * lease keeps a second message of the thread from leaving before the first one has.
 */
export function takeLock(sql: Sql, seq: number, owner: MessageId, until: number): void {
  sql.run('UPDATE threads SET lock_owner = ?, lock_until = ? WHERE seq = ?', owner, until, seq);
}

/** Until when another message than `owner` holds the thread (Unix ms), or null when the lock can be taken. */
export function lockedUntil(sql: Sql, seq: number, owner: MessageId, now: number): number | null {
  const { lock_owner: holder, lock_until: until } = threadBySeq(sql, seq);
  if (holder === null || holder === owner || until === null || until < now) return null;
  // No lease is so long: it was taken by a clock that was put back since, and its holder has had its time.
  return until > now + 2 * LIMITS.thread_lock_lease_ms ? null : until;
}

/** Prolongs the lease of a message that is about to leave; nothing when it holds no lock. */
export function refreshLock(sql: Sql, seq: number, owner: MessageId, until: number): void {
  sql.run('UPDATE threads SET lock_until = ? WHERE seq = ? AND lock_owner = ?', until, seq, owner);
}

export function releaseLock(sql: Sql, seq: number, owner: MessageId): void {
  sql.run('UPDATE threads SET lock_owner = NULL, lock_until = NULL WHERE seq = ? AND lock_owner = ?', seq, owner);
}
