import type { DeliveryStatus } from '@pmail/core/delivery/status.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import { readMeta, writeMeta } from '../meta.ts';
import { forgetSend, isWaiting, readClaim } from './claims.ts';
import { emit } from './events.ts';
import { deferUnsent } from './leave-queue.ts';
import { findMessage, partsOf, readDeliveries } from './messages.ts';
import { oweQuota, payQuota } from './quota-tasks.ts';
import { type MessageRow, messageResource } from './rows.ts';
import { releaseLock } from './threads.ts';
import type { MailboxWorld } from './world.ts';

export type CancelAnswer = { ok: true; message: MessageResource } | Refusal;

/** Takes a send back while nothing of it can have been sent: queued, not claimed, no recipient handed over. */
export async function cancel(world: MailboxWorld, messageId: MessageId): Promise<CancelAnswer> {
  const answer = world.sql.transaction((): CancelAnswer => {
    const row = findMessage(world.sql, messageId);
    if (row === undefined || row.direction !== 'outbound') return refuse('message_not_found');
    if (!isCancelable(world, row)) return refuse('not_cancelable', { status: row.status });
    const after = cancelRow(world, row);
    return { ok: true, message: messageResource(world.owner, partsOf(world.sql, after), { text: false, html: false }) };
  });
  if (answer.ok) {
    world.mark('cancel.committed');
    await payQuota(world);
  }
  return answer;
}

const UNSENT: readonly DeliveryStatus[] = ['queued', 'suppressed', 'rejected'];

function isCancelable(world: MailboxWorld, row: MessageRow): boolean {
  if (row.status !== 'queued' || readClaim(world.sql, row.id) !== undefined) return false;
  // A recipient that was refused got nothing, so nothing of the message has left as long as nobody has taken it.
  return row.accepted === 0 && readDeliveries(world.sql, row.rowid).every(({ status }) => UNSENT.includes(status));
}

/** The deliveries keep `queued`: the message's status is what counts. */
function cancelRow(world: MailboxWorld, row: MessageRow): MessageRow {
  const { sql } = world;
  sql.run("UPDATE messages SET status = 'canceled' WHERE rowid = ?", row.rowid);
  forgetSend(sql, row.id);
  releaseLock(sql, row.thread_seq, row.id);
  oweQuota(world, { op: 'release', ref: row.id, identity_id: world.owner.identity_id });
  emit(world, 'message.canceled', { message_id: row.id });
  world.mark('cancel.in_transaction');
  const after = findMessage(sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  return after;
}

export type StopAnswer =
  | { kind: 'canceled' }
  /** Part of it was sent: the rest waits, and ends with its day. */
  | { kind: 'deferred'; delay_ms: number }
  /** Claimed, ended or unknown: nothing to stop. */
  | { kind: 'nothing' };

/**
 * The service itself stops a queued send because its identity or tenant may not send any more. What was partly handed
 * over cannot be canceled, so its remaining recipients wait as long as a back-off may last.
 */
export async function stopSend(world: MailboxWorld, messageId: MessageId, reason: string): Promise<StopAnswer> {
  const answer = world.sql.transaction((): StopAnswer => {
    const row = findMessage(world.sql, messageId);
    // Answered again as the first time, so that a caller that died before its audit row can still write it.
    if (readMeta(world.sql, `stopped:${messageId}`) !== undefined) return { kind: 'canceled' };
    if (row === undefined || !isWaiting(world.sql, messageId) || readClaim(world.sql, messageId) !== undefined) {
      return { kind: 'nothing' };
    }
    if (isCancelable(world, row)) {
      cancelRow(world, row);
      writeMeta(world.sql, `stopped:${messageId}`, reason);
      return { kind: 'canceled' };
    }
    const delay = deferUnsent(world, row, 'the identity may not send at present');
    return delay === null ? { kind: 'nothing' } : { kind: 'deferred', delay_ms: delay };
  });
  if (answer.kind !== 'nothing') world.mark('cancel.committed');
  await payQuota(world);
  return answer;
}
