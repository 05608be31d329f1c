import type { OutcomePlan } from '@pmail/core/delivery/outcome.ts';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { setDeadline, setDeadlineNoLater } from '../alarms.ts';
import { deleteMeta, metaWithPrefix, readMeta, writeMeta } from '../meta.ts';
import type { Dispatched } from '../ports.ts';
import type { Sql } from '../sql.ts';
import { applyOutcome, SETTLE_DECIDED } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/**
 * A mailbox whose storage was put back to an earlier time does not know it: its ledger lacks the keys accepted since,
 * and what it holds as queued may long have left. Its events tell. They are numbered upwards for ever and indexed outside,
 * so an index that knows a higher number than the mailbox proves that time was turned back. From then on nothing is
 * accepted or sent until the ledger has been made again from the object store.
 */

export function eventSequence(sql: Sql): number {
  return Number(readMeta(sql, 'event_seq') ?? 0);
}

/** Whether the mailbox was put back and its ledger is not whole yet. */
export function isRestored(sql: Sql): boolean {
  return readMeta(sql, 'restored') !== undefined;
}

/**
 * Holds the mailbox against what the index knew of it before this call.
 *
 * @param known highest number in the index, read before the mailbox was entered; null when it has none
 * @returns whether the mailbox is waiting for its ledger
 */
export function noticeRestore(world: MailboxWorld, known: number | null): boolean {
  if (isRestored(world.sql)) return true;
  if (known === null || known <= eventSequence(world.sql)) return false;
  world.sql.transaction(() => turnBack(world, known));
  return true;
}

/**
 * Somebody says that the mailbox was put back, which its events cannot tell where none was told since. It counts at once,
 * before anybody is asked anything: from here on no key makes a message and nothing leaves. Said again it changes nothing.
 */
export function takeForRestored(world: MailboxWorld): void {
  if (!isRestored(world.sql)) world.sql.transaction(() => turnBack(world, 0));
}

/** The next event has a number above this one, and above its own. */
export function goOnAbove(sql: Sql, known: number): void {
  writeMeta(sql, 'event_seq', String(Math.max(known, eventSequence(sql))));
}

/**
 * The mailbox was put back: numbers go on above the highest known, and what waited may have left long ago. Call inside a
 * transaction.
 */
export function turnBack(world: MailboxWorld, known: number): void {
  const { sql } = world;
  const now = world.now();
  if (!isRestored(sql)) world.log('warn', 'mailbox_restored', { known, own: eventSequence(sql) });
  writeMeta(sql, 'restored', String(now));
  world.rebuild.awaited = true;
  // The entry in the registry of work that is remembered here may be gone there.
  deleteMeta(sql, 'work_since', 'rebuild');
  sql.run('DELETE FROM lost_sends');
  goOnAbove(sql, known);
  for (const { k } of metaWithPrefix(sql, 'dispatch:')) {
    const row = findMessage(sql, k.slice('dispatch:'.length) as MessageId);
    if (row !== undefined) applyOutcome(world, row, mayHaveLeft(sql, row), SETTLE_DECIDED);
  }
  setDeadlineNoLater(world, 'rebuild', now);
  setDeadline(world, 'outbox', now);
}

/**
 * What was told in the time that is forgotten keeps the number under which the index has it, even when it happened again
 * since under the same id. Without a restore these are the numbers that it has here. Call inside a transaction.
 */
export function keepToldNumbers(sql: Sql, told: Dispatched['known']): void {
  for (const { id, sequence } of told) {
    const row = sql.first<OutboxRow>('SELECT seq, payload_json FROM outbox WHERE event_id = ?', id);
    if (row === undefined || row.seq === sequence) continue;
    if (sql.first('SELECT 1 FROM outbox WHERE seq = ?', sequence) === undefined) give(sql, row, sequence);
  }
}

interface OutboxRow {
  seq: number;
  payload_json: string;
}

function give(sql: Sql, { seq, payload_json: payload }: OutboxRow, sequence: number): void {
  const envelope: EventEnvelope = { ...parseJson<EventEnvelope>(payload), sequence };
  sql.run('UPDATE outbox SET seq = ?, payload_json = ? WHERE seq = ?', sequence, JSON.stringify(envelope), seq);
}

/**
 * Gives the events that wait, up to a number, others above all that were given out before. Only the index can say which of
 * them it has seen; those have to be marked as handed on before, and the rest, about which it was not asked, keep theirs. Call
 * inside a transaction.
 */
export function renumberWaiting(sql: Sql, upTo: number): void {
  const waiting = sql.all<OutboxRow>(
    'SELECT seq, payload_json FROM outbox WHERE dispatched_at IS NULL AND seq <= ? ORDER BY seq DESC',
    upTo,
  );
  const last = eventSequence(sql) + waiting.length;
  // From the last one down and always upwards, so that no two ever have one number.
  waiting.forEach((row, index) => {
    give(sql, row, last - index);
  });
  writeMeta(sql, 'event_seq', String(last));
}

function mayHaveLeft(sql: Sql, row: MessageRow): OutcomePlan {
  const queued = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'queued');
  return {
    changes: queued.map(({ address }) => ({
      address,
      status: 'uncertain',
      smtp_code: null,
      enhanced_code: null,
      smtp_response: null,
    })),
    retry: null,
    reason: 'mailbox_restored',
    detail: null,
    accepted: false,
    provider_message_id: null,
    rfc_message_id: null,
    unknown: true,
  };
}
