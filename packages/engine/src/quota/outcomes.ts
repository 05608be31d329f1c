import { LIMITS } from '@pmail/core/limits.ts';
import type { QuotaEngineWorld } from './reserve.ts';
import type { OutcomeAnswer, OutcomeRequest } from './types.ts';

/**
 * Adds one outcome to the windows of an identity and judges it by them. Repeats of an event are counted once and answer
 * with the present windows, so a consumer that died after the count still pauses.
 *
 * The shares are taken of the window's size, not of the rows present, so a young identity is not paused by its first
 * complaint. Only an outcome of the kind that is over its bound calls for a pause: after a resume the window is still
 * as full as it was, and a delivery is no reason to pause again.
 */
export function recordOutcome(world: QuotaEngineWorld, request: OutcomeRequest): OutcomeAnswer {
  const { sql } = world;
  const { identity_id: identity } = request;
  return sql.transaction(() => {
    const fresh = sql.first(
      'INSERT OR IGNORE INTO outcome_events (event_id, at) VALUES (?, ?) RETURNING 1 AS fresh',
      request.event_id,
      world.now(),
    );
    world.mark('quota.in_transaction');
    if (fresh !== undefined) {
      const last = sql.first<{ seq: number | null }>(
        'SELECT MAX(seq) AS seq FROM outcomes WHERE identity_id = ?',
        identity,
      );
      const seq = (last?.seq ?? 0) + 1;
      sql.run(
        'INSERT INTO outcomes (identity_id, seq, outcome, at) VALUES (?, ?, ?, ?)',
        identity,
        seq,
        request.outcome,
        request.at,
      );
      sql.run('DELETE FROM outcomes WHERE identity_id = ? AND seq <= ?', identity, seq - LIMITS.outcomes_kept_max);
    }
    const event = sql.first<{ at: number }>('SELECT at FROM outcome_events WHERE event_id = ?', request.event_id);
    return { ...judge(world, request), counted_at: event?.at ?? world.now() };
  });
}

function judge({ sql }: QuotaEngineWorld, request: OutcomeRequest): Omit<OutcomeAnswer, 'counted_at'> {
  const count = (outcome: string, window: number): number =>
    sql.first<{ n: number }>(
      `SELECT COUNT(*) AS n FROM (
         SELECT outcome FROM outcomes WHERE identity_id = ? ORDER BY seq DESC LIMIT ?
       ) WHERE outcome = ?`,
      request.identity_id,
      window,
      outcome,
    )?.n ?? 0;
  const complaints = count('complained', LIMITS.complaint_window_count);
  const bounces = count('bounced', LIMITS.bounce_window_count);
  const { outcome, complaint_rate_pause, bounce_rate_pause } = request;
  const pause =
    (outcome === 'complained' && complaints / LIMITS.complaint_window_count > complaint_rate_pause) ||
    (outcome === 'bounced' && bounces / LIMITS.bounce_window_count > bounce_rate_pause);
  return { pause, complaints, bounces };
}
