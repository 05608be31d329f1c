import type { Address } from '@pmail/core/address/address.ts';
import { rollUp } from '@pmail/core/delivery/rollup.ts';
import type { OutboundStatus, StatusReason } from '@pmail/core/delivery/status.ts';
import type { TransportResult } from '@pmail/core/transport/types.ts';
import { emit } from './events.ts';
import { emitFailed, emitRejected, emitSent, SETTLE_UNCERTAIN } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { recordAcceptance } from './provider-ids.ts';
import { oweQuota } from './quota-tasks.ts';
import { type DeliveryRow, type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

type Settled = 'submitted' | 'failed' | 'rejected';

/** A person's word about everything that is uncertain in a message. Call inside a transaction. */
export function settleByPerson(world: MailboxWorld, row: MessageRow, outcome: 'sent' | 'not_sent'): MessageRow {
  const status = outcome === 'sent' ? 'submitted' : 'failed';
  const uncertain = uncertainOf(world, row);
  for (const { address } of uncertain) settle(world, row, address, status);
  if (status === 'submitted') recordAcceptance(world.sql, row, null, null);
  const after = rollUpSettled(world, row, status === 'failed' ? 'resolved_not_sent' : null, false);
  if (status === 'submitted') {
    oweAcceptance(
      world,
      row,
      uncertain.map(({ position }) => position),
    );
    emitSentOnce(world, after);
  } else if (after.status === 'failed') emitFailed(world, after);
  return after;
}

/**
 * What the one transport call of an uncertain message turned out to have done, told after its claim had gone stale.
 * Recipients that it put off stay uncertain: they would have to be sent to again, which an uncertain message never is.
 * Call inside a transaction.
 *
 * @returns whether anything became known
 */
export function settleByProvider(world: MailboxWorld, row: MessageRow, result: TransportResult): boolean {
  const uncertain = uncertainOf(world, row);
  const refused = 'refused' in result ? new Set(result.refused.map(({ address }) => address)) : new Set<Address>();
  const accepted: number[] = [];
  let changed = 0;
  for (const { address, position } of uncertain) {
    const status = statusOf(result, refused, address);
    if (status === null) continue;
    settle(world, row, address, status);
    changed++;
    if (status === 'submitted') accepted.push(position);
  }
  if (changed === 0) return false;
  if (result.kind === 'accepted') {
    recordAcceptance(world.sql, row, result.provider_message_id, result.rfc_message_id);
    oweAcceptance(world, row, accepted);
  }
  const after = rollUpSettled(world, row, reasonOf(result), true);
  emit(world, 'message.reconciled', { message_id: row.id, status: after.status });
  if (accepted.length > 0) emitSentOnce(world, after);
  else if (after.status === 'rejected') emitRejected(world, after, 'detail' in result ? result.detail : null);
  // Somebody of whom it was known before that he was not reached makes the whole one that failed.
  else if (after.status === 'failed') emitFailed(world, after);
  return true;
}

/** Some may have been known to be taken when the others became uncertain, and the message was told to be sent then. */
function emitSentOnce(world: MailboxWorld, row: MessageRow): void {
  const told = world.sql.first(
    "SELECT 1 FROM outbox WHERE type = 'message.sent' AND json_extract(payload_json, '$.data.message.id') = ?",
    row.id,
  );
  if (told === undefined) emitSent(world, row);
}

function reasonOf(result: TransportResult): StatusReason | null {
  if (result.kind === 'suppressed') return 'recipient_suppressed_by_provider';
  return result.kind === 'rejected' ? result.reason : null;
}

function statusOf(result: TransportResult, refused: ReadonlySet<Address>, address: Address): Settled | null {
  if (refused.has(address)) return 'rejected';
  if (result.kind === 'rejected' || result.kind === 'suppressed') return 'rejected';
  return result.kind === 'accepted' && !result.deferred.includes(address) ? 'submitted' : null;
}

function uncertainOf(world: MailboxWorld, row: MessageRow): DeliveryRow[] {
  return readDeliveries(world.sql, row.rowid).filter(({ status }) => status === 'uncertain');
}

function settle(world: MailboxWorld, row: MessageRow, address: Address, status: Settled): void {
  world.sql.run(
    "UPDATE deliveries SET status = ?, updated_at = ? WHERE message_rowid = ? AND address = ? AND status = 'uncertain'",
    status,
    world.now(),
    row.rowid,
    address,
  );
}

function rollUpSettled(
  world: MailboxWorld,
  row: MessageRow,
  reason: StatusReason | null,
  reconciled: boolean,
): MessageRow {
  const { sql } = world;
  const deliveries = readDeliveries(sql, row.rowid).map(({ status }) => status);
  const status = rollUp(row.status as OutboundStatus, deliveries);
  const flags = parseJson<string[]>(row.flags_json);
  if (reconciled && !flags.includes('reconciled')) flags.push('reconciled');
  const known =
    status === 'failed' || status === 'rejected' ? reason : status === 'uncertain' ? row.status_reason : null;
  sql.run(
    'UPDATE messages SET status = ?, status_reason = ?, flags_json = ? WHERE rowid = ?',
    status,
    known,
    JSON.stringify(flags),
    row.rowid,
  );
  const after = findMessage(sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  return after;
}

/**
 * Counts recipients of which it is known only now that they were accepted. The hold of an uncertain send was freed; of one
 * that is still queued it goes on for whoever else waits.
 *
 * @param positions of the recipients in the message; each leaves `queued` or `uncertain` for such a reason once, so the
 *   first names the settlement
 */
export function oweAcceptance(world: MailboxWorld, row: MessageRow, positions: number[]): void {
  if (positions.length === 0) return;
  const waiting = readDeliveries(world.sql, row.rowid).filter(({ status }) => status === 'queued');
  oweQuota(world, {
    op: 'settle',
    ref: row.id,
    n: SETTLE_UNCERTAIN + Math.min(...positions),
    identity_id: world.owner.identity_id,
    consume: positions.length,
    accepted: positions,
    keep: waiting.length,
    until: null,
    outbound: row.accepted === 0 ? 1 : 0,
  });
}
