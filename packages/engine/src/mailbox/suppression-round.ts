import { planOutcome } from '@pmail/core/delivery/outcome.ts';
import { suppressedChanges } from '@pmail/core/delivery/suppression.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { ProviderSuppression, TransportResult } from '@pmail/core/transport/types.ts';
import { attemptsOf, endAttempt, findAttempt, startAttempt } from './attempts.ts';
import { type ClaimedSend, claimedSend } from './claimed-send.ts';
import { type Claim, readBackoff, readClaim, writeClaim } from './claims.ts';
import { applyOutcome, NOBODY_LEFT, writeChange } from './leave-queue.ts';
import { findMessage, readDeliveries } from './messages.ts';
import { payQuota } from './quota-tasks.ts';
import { lateResult } from './record-outcome.ts';
import type { MessageRow } from './rows.ts';
import { refreshLock } from './threads.ts';
import type { MailboxWorld } from './world.ts';

type Suppressed = Extract<TransportResult, { kind: 'suppressed' }>;

export interface SuppressedRequest {
  message_id: MessageId;
  /** Token of the call that was refused. */
  claim_token: string;
  /** Token of the next call; drawn for it and never used for another. */
  next_token: string;
  /** The refusal: nothing was sent to anybody. */
  result: Suppressed;
  /** Whom it was for; the caller knows at least one. */
  suppressed: ProviderSuppression[];
}

export type SuppressedAnswer =
  /** Everybody else is waiting: make this call, under the claim that stands. */
  | { kind: 'again'; send: ClaimedSend }
  /** Nobody is left, or the round was the last; or the claim had gone. */
  | { kind: 'ended' }
  /** Too little is left of the claim for another call. */
  | { kind: 'deferred'; delay_ms: number };

/**
 * Records that a provider refused a whole message because of some of its recipients, and claims the next call, for the
 * others, in the same transaction. The refused call has ended for certain, so nobody is in two calls; the next one has its
 * own row and token, so it is made once like any other, and when it is lost the message becomes uncertain.
 */
export async function recordSuppressed(world: MailboxWorld, request: SuppressedRequest): Promise<SuppressedAnswer> {
  const answer = world.sql.transaction(() => record(world, request));
  world.mark('round.committed');
  await payQuota(world);
  return answer;
}

function record(world: MailboxWorld, request: SuppressedRequest): SuppressedAnswer {
  const { sql } = world;
  const row = findMessage(sql, request.message_id);
  const attempt = findAttempt(sql, request.claim_token);
  if (row === undefined || attempt === undefined || attempt.message_rowid !== row.rowid) return { kind: 'ended' };
  const claim = readClaim(sql, row.id);
  if (attempt.ended_at !== null) return repeated(world, row, request, claim);
  const current = claim?.token === request.claim_token;
  endAttempt(sql, request.claim_token, request.result, world.now(), !current);
  if (!current) {
    lateResult(world, row, attempt, request.result);
    return { kind: 'ended' };
  }
  for (const change of suppressedChanges(request.suppressed)) writeChange(world, row, change, world.now());
  const answer = goOn(world, row, request, claim, attempt.n);
  world.mark('round.in_transaction');
  return answer;
}

function goOn(
  world: MailboxWorld,
  row: MessageRow,
  { next_token: token, result }: SuppressedRequest,
  claim: Claim,
  settlement: number,
): SuppressedAnswer {
  const { sql, waits } = world;
  const now = world.now();
  const queued = readDeliveries(sql, row.rowid).filter(({ status }) => status === 'queued');
  const facts = {
    queued: queued.map(({ address }) => address),
    backoff_n: readBackoff(sql, row.id)?.n ?? 0,
    submitted_at: row.received_at,
    now,
    random: world.random(),
  };
  if (queued.length === 0) {
    applyOutcome(world, row, NOBODY_LEFT, settlement);
    return { kind: 'ended' };
  }
  if (roundsOf(sql, row) > LIMITS.suppression_rounds_max) {
    applyOutcome(world, row, planOutcome(result, facts), settlement);
    return { kind: 'ended' };
  }
  if (now + LIMITS.transport_deadline_ms >= claim.claimed_at + waits.claim_ttl_ms) {
    const { code, detail } = result;
    const later: TransportResult = { kind: 'retry_later', class: 'paused', code, detail, refused: [] };
    const delay = applyOutcome(world, row, planOutcome(later, facts), settlement);
    return delay === null ? { kind: 'ended' } : { kind: 'deferred', delay_ms: delay };
  }
  const provider = row.provider;
  if (provider === null) throw new Error('claimed message without a provider');
  // Under the same claim: how long it has lasted already still counts.
  writeClaim(sql, row.id, { token, claimed_at: claim.claimed_at });
  startAttempt(sql, row.rowid, token, provider, now);
  refreshLock(sql, row.thread_seq, row.id, now + LIMITS.thread_lock_claim_lease_ms);
  return { kind: 'again', send: claimedSend(sql, row, token, provider) };
}

/** How many calls in a row have ended so, the latest included. */
function roundsOf(sql: MailboxWorld['sql'], row: MessageRow): number {
  const attempts = attemptsOf(sql, row.rowid).reverse();
  const other = attempts.findIndex(({ result }) => result !== 'suppressed');
  return other < 0 ? attempts.length : other;
}

/** The record had landed but its answer was lost. The next call was claimed for the one who asks, and is not made yet. */
function repeated(
  world: MailboxWorld,
  row: MessageRow,
  { next_token: token }: SuppressedRequest,
  claim: Claim | undefined,
): SuppressedAnswer {
  const { sql } = world;
  const next = findAttempt(sql, token);
  if (claim?.token === token && next !== undefined && next.ended_at === null) {
    return { kind: 'again', send: claimedSend(sql, row, token, next.provider) };
  }
  const put = readBackoff(sql, row.id) !== undefined && claim === undefined;
  return put ? { kind: 'deferred', delay_ms: world.waits.dispatch_after_ms } : { kind: 'ended' };
}
