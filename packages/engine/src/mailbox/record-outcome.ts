import { planOutcome } from '@pmail/core/delivery/outcome.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { TransportResult } from '@pmail/core/transport/types.ts';
import { type AttemptRow, endAttempt, findAttempt } from './attempts.ts';
import { readBackoff, readClaim } from './claims.ts';
import { scheduleFollowups } from './followups.ts';
import { applyOutcome } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { recordIds } from './provider-ids.ts';
import { payQuota } from './quota-tasks.ts';
import { type MessageRow, parseJson } from './rows.ts';
import { settleByProvider } from './settle-uncertain.ts';
import type { MailboxWorld } from './world.ts';

export interface OutcomeRequest {
  message_id: MessageId;
  claim_token: string;
  result: TransportResult;
}

/** What the consumer does next: nothing, or queue the message again after the delay. */
export interface OutcomeAnswer {
  /** False when the result came too late to decide anything (it is kept as evidence), or was recorded before. */
  applied: boolean;
  delay_ms: number | null;
}

/** Records how the claimed transport call ended. Repeating it with the same token changes nothing. */
export async function recordOutcome(world: MailboxWorld, request: OutcomeRequest): Promise<OutcomeAnswer> {
  const answer = world.sql.transaction(() => record(world, request));
  world.mark('outcome.committed');
  await payQuota(world);
  return answer;
}

function record(world: MailboxWorld, request: OutcomeRequest): OutcomeAnswer {
  const { sql } = world;
  const row = findMessage(sql, request.message_id);
  const attempt = findAttempt(sql, request.claim_token);
  if (row === undefined || attempt === undefined || attempt.message_rowid !== row.rowid) {
    return { applied: false, delay_ms: null };
  }
  if (attempt.ended_at !== null) return repeated(world, row);
  const claim = readClaim(sql, row.id);
  const current = claim?.token === request.claim_token;
  endAttempt(sql, request.claim_token, request.result, world.now(), !current);
  if (!current) {
    lateResult(world, row, attempt, request.result);
    return { applied: false, delay_ms: null };
  }
  const queued = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'queued');
  const plan = planOutcome(request.result, {
    queued: queued.map(({ address }) => address),
    backoff_n: readBackoff(sql, row.id)?.n ?? 0,
    submitted_at: row.received_at,
    now: world.now(),
    random: world.random(),
  });
  const delay = applyOutcome(world, row, plan, attempt.n);
  if (request.result.kind === 'accepted') scheduleFollowups(world, row, request.result);
  world.mark('outcome.in_transaction');
  return { applied: true, delay_ms: delay };
}

/** The record had landed but its answer was lost: the consumer still has to queue a message that was put off. */
function repeated(world: MailboxWorld, row: MessageRow): OutcomeAnswer {
  const backoff = readBackoff(world.sql, row.id);
  if (backoff === undefined || readClaim(world.sql, row.id) !== undefined) {
    return { applied: false, delay_ms: null };
  }
  return { applied: false, delay_ms: world.waits.dispatch_after_ms };
}

/**
 * The claim had gone stale before its holder reported. The call was the only one there will be, so an acceptance tells
 * the truth about an uncertain message and settles it; a refusal does the same. A result that would normally be tried
 * again is only evidence: an uncertain message is never sent again by itself.
 */
export function lateResult(world: MailboxWorld, row: MessageRow, attempt: AttemptRow, result: TransportResult): void {
  world.log('warn', 'late_transport_result', { message_id: row.id, result: result.kind, attempt: attempt.n });
  const reconciled = parseJson<string[]>(row.flags_json).includes('reconciled');
  // An event has already said that it was sent; a refusal now is about something else.
  if (reconciled && result.kind !== 'accepted') return;
  const settled = settleByProvider(world, row, result);
  if (result.kind === 'accepted') {
    if (settled) scheduleFollowups(world, row, result);
    // Somebody else had said already that it was sent; the ids by which its reports name it are new all the same.
    else if (row.accepted === 1) recordIds(world.sql, row, result.provider_message_id, result.rfc_message_id);
  }
}
