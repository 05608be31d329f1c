import { rollUp } from '@pmail/core/delivery/rollup.ts';
import type { StatusReason } from '@pmail/core/delivery/status.ts';
import { emit } from './events.ts';
import { emitFailed, emitRejected, emitSent, SETTLE_UNCERTAIN } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { oweQuota } from './quota-tasks.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/** The truth about uncertain recipients, by a person or by the provider itself. */
export type Settlement =
  | { status: 'submitted'; cause: 'person'; provider_message_id: null; rfc_message_id: null }
  | { status: 'submitted'; cause: 'provider'; provider_message_id: string; rfc_message_id: string | null }
  | { status: 'failed'; cause: 'person' }
  | { status: 'rejected'; cause: 'provider'; reason: StatusReason; detail: string };

/** Moves every uncertain delivery of a message to its settled status. Call inside a transaction. */
export function settleUncertain(world: MailboxWorld, row: MessageRow, settlement: Settlement): MessageRow {
  const { sql } = world;
  const uncertain = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'uncertain');
  sql.run(
    "UPDATE deliveries SET status = ?, updated_at = ? WHERE message_rowid = ? AND status = 'uncertain'",
    settlement.status,
    world.now(),
    row.rowid,
  );
  const flags = parseJson<string[]>(row.flags_json);
  if (settlement.cause === 'provider' && !flags.includes('reconciled')) flags.push('reconciled');
  const deliveries = readDeliveries(sql, row.rowid).map(({ status }) => status);
  const status = rollUp('submitted', deliveries);
  const reason =
    settlement.status === 'failed' ? 'resolved_not_sent' : settlement.status === 'rejected' ? settlement.reason : null;
  sql.run(
    `UPDATE messages SET status = ?, status_reason = ?, flags_json = ?,
       provider_message_id = COALESCE(?, provider_message_id), rfc_message_id = COALESCE(?, rfc_message_id)
     WHERE rowid = ?`,
    status,
    reason,
    JSON.stringify(flags),
    settlement.status === 'submitted' ? settlement.provider_message_id : null,
    settlement.status === 'submitted' ? settlement.rfc_message_id : null,
    row.rowid,
  );
  const after = findMessage(sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  if (settlement.cause === 'provider') emit(world, 'message.reconciled', { message_id: row.id, status });
  if (settlement.status === 'submitted') {
    oweAcceptance(world, row, uncertain.length);
    emitSent(world, after);
  } else if (settlement.status === 'failed') emitFailed(world, after);
  else emitRejected(world, after, settlement.detail);
  return after;
}

/** The hold was freed when the send became uncertain; what turns out to have been accepted is counted now, once. */
export function oweAcceptance(world: MailboxWorld, row: MessageRow, recipients: number): void {
  oweQuota(world, {
    op: 'settle',
    ref: row.id,
    n: SETTLE_UNCERTAIN,
    identity_id: world.owner.identity_id,
    consume: recipients,
    keep: 0,
    until: null,
    outbound: row.provider_message_id === null ? 1 : 0,
  });
}
