import { type DeliveryChange, type OutcomePlan, planDeferral } from '@pmail/core/delivery/outcome.ts';
import { rollUp } from '@pmail/core/delivery/rollup.ts';
import { isTerminal, type OutboundStatus } from '@pmail/core/delivery/status.ts';
import { UNCERTAIN_FIX } from '@pmail/core/delivery/uncertain.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { setDeadlineNoLater } from '../alarms.ts';
import { deleteMeta, writeMeta } from '../meta.ts';
import { forgetSend, readBackoff } from './claims.ts';
import { emit } from './events.ts';
import { findMessage, partsOf, readDeliveries } from './messages.ts';
import { recordAcceptance } from './provider-ids.ts';
import { oweQuota } from './quota-tasks.ts';
import { type DeliveryRow, type MessageRow, messageSummary, parseJson } from './rows.ts';
import { releaseLock } from './threads.ts';
import type { MailboxWorld } from './world.ts';

/** The plan of a message that leaves the queue because nobody in it waits any more. */
export const NOBODY_LEFT: OutcomePlan = {
  changes: [],
  retry: null,
  reason: null,
  detail: null,
  accepted: false,
  provider_message_id: null,
  rfc_message_id: null,
  unknown: false,
};

/**
 * Applies the plan of one outcome to a queued message, inside the caller's transaction: deliveries, status, back-off,
 * lock, quota debt and events.
 *
 * @param settlement ordinal of this settlement for the quota; the attempt's number
 * @returns ms until the next attempt, or null when the message has left the queue
 */
export function applyOutcome(
  world: MailboxWorld,
  row: MessageRow,
  plan: OutcomePlan,
  settlement: number,
): number | null {
  const { sql } = world;
  const now = world.now();
  for (const change of plan.changes) writeChange(world, row, change, now);
  const firstAcceptance = plan.accepted && row.accepted === 0;
  if (plan.accepted) recordAcceptance(sql, row, plan.provider_message_id, plan.rfc_message_id);
  const deliveries = readDeliveries(sql, row.rowid);
  const accepted = positionsOf(deliveries, plan);
  const keep = plan.retry === null ? 0 : queuedOf(deliveries).length;
  // With units kept, the settlement moves the hold's end itself; nothing to settle on a plain back-off.
  if (plan.retry === null || plan.accepted) {
    oweQuota(world, {
      op: 'settle',
      ref: row.id,
      n: settlement,
      identity_id: world.owner.identity_id,
      consume: accepted.length,
      accepted,
      keep,
      until: plan.retry === null ? null : plan.retry.at + LIMITS.hold_grace_ms,
      outbound: firstAcceptance ? 1 : 0,
    });
  }
  if (plan.retry !== null) {
    putOff(world, row, plan.retry, !plan.accepted);
    return plan.retry.delay_ms;
  }
  leave(world, row, plan);
  return null;
}

function positionsOf(deliveries: DeliveryRow[], { changes }: OutcomePlan): number[] {
  const taken = new Set<string>(changes.flatMap(({ address, status }) => (status === 'submitted' ? [address] : [])));
  return deliveries.filter(({ address }) => taken.has(address)).map(({ position }) => position);
}

function queuedOf(deliveries: DeliveryRow[]): string[] {
  return deliveries.filter(({ status }) => status === 'queued').map(({ address }) => address);
}

export function writeChange(world: MailboxWorld, row: MessageRow, change: DeliveryChange, now: number): void {
  world.sql.run(
    `UPDATE deliveries SET status = ?, smtp_code = COALESCE(?, smtp_code), enhanced_code = COALESCE(?, enhanced_code),
       smtp_response = COALESCE(?, smtp_response), updated_at = ?
     WHERE message_rowid = ? AND address = ? AND status = 'queued'`,
    change.status,
    change.smtp_code,
    change.enhanced_code,
    change.smtp_response?.slice(0, LIMITS.smtp_response_chars_max) ?? null,
    now,
    row.rowid,
    change.address,
  );
}

/** Back to the queue until `retry.at`. The thread is free meanwhile: the message is certainly unsent and may wait long. */
function putOff(world: MailboxWorld, row: MessageRow, retry: { n: number; at: number }, extendHold: boolean): void {
  const { sql } = world;
  const before = readBackoff(sql, row.id);
  writeMeta(sql, `backoff:${row.id}`, JSON.stringify({ n: retry.n, first_at: before?.first_at ?? world.now() }));
  deleteMeta(sql, `claim:${row.id}`);
  writeMeta(sql, `dispatch:${row.id}`, String(retry.at));
  setDeadlineNoLater(world, 'dispatch', retry.at + world.waits.dispatch_after_ms);
  releaseLock(sql, row.thread_seq, row.id);
  if (extendHold) {
    const until = retry.at + LIMITS.hold_grace_ms;
    oweQuota(world, { op: 'extend', ref: row.id, identity_id: world.owner.identity_id, until });
  }
}

function leave(world: MailboxWorld, row: MessageRow, plan: OutcomePlan): void {
  const { sql } = world;
  const deliveries = readDeliveries(sql, row.rowid);
  const current = row.status as OutboundStatus;
  const rolled = rollUp(
    current,
    deliveries.map((entry) => entry.status),
  );
  // Reports may have ended everyone the call was made for before anyone knew how it had gone.
  const unknown = plan.unknown && deliveries.some((entry) => entry.status === 'uncertain');
  const status = unknown && !isTerminal(current) ? 'uncertain' : rolled;
  forgetSend(sql, row.id);
  releaseLock(sql, row.thread_seq, row.id);
  if (status !== current) {
    const reason = status === 'rejected' || status === 'failed' || status === 'uncertain' ? plan.reason : null;
    sql.run('UPDATE messages SET status = ?, status_reason = ? WHERE rowid = ?', status, reason, row.rowid);
  }
  const after = findMessage(sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  if (after.accepted === 1) emitSent(world, after);
  if (status === current) return;
  if (status === 'rejected') emitRejected(world, after, plan.detail);
  else if (status === 'failed') emitFailed(world, after);
  else if (status === 'uncertain') {
    emit(world, 'message.uncertain', { message_id: row.id, reason: plan.reason, fix: UNCERTAIN_FIX });
  } else if (status === 'suppressed') {
    emit(world, 'message.suppressed', {
      message_id: row.id,
      recipients: deliveries.map(({ address, smtp_response }) => ({ address, reason: smtp_response })),
    });
  }
}

export function emitSent(world: MailboxWorld, row: MessageRow): void {
  emit(world, 'message.sent', {
    message: messageSummary(partsOf(world.sql, row)),
    provider: row.provider,
    provider_message_id: row.provider_message_id,
    sent_via_fallback: parseJson<string[]>(row.flags_json).includes('sent_via_fallback'),
  });
}

export function emitRejected(world: MailboxWorld, row: MessageRow, detail: string | null): void {
  emit(world, 'message.rejected', {
    message_id: row.id,
    reason: row.status_reason ?? 'provider_validation',
    detail,
  });
}

export function emitFailed(world: MailboxWorld, row: MessageRow): void {
  emit(world, 'message.failed', { message_id: row.id, reason: row.status_reason });
}

/**
 * Puts a message off that may not leave now, without any transport call: the back-off of `paused`, until the day is
 * over. Call inside a transaction.
 */
export function deferUnsent(world: MailboxWorld, row: MessageRow, detail: string): number | null {
  const queued = queuedOf(readDeliveries(world.sql, row.rowid));
  const plan = planDeferral(detail, {
    queued,
    backoff_n: readBackoff(world.sql, row.id)?.n ?? 0,
    submitted_at: row.received_at,
    now: world.now(),
    random: world.random(),
  });
  return applyOutcome(world, row, plan, SETTLE_DEFERRAL_END);
}

/**
 * Ordinals of settlements that belong to no attempt, beyond any number of attempts (a day of them at one a minute is
 * well over a thousand). A message has at most one of the first two; a recipient leaves `uncertain` at most once, so its
 * position makes the last one unique.
 */
export const SETTLE_DEFERRAL_END = 1_000_000;
export const SETTLE_DECIDED = 1_000_001;
export const SETTLE_UNCERTAIN = 2_000_000;
