import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { DeliverJob } from '@pmail/core/queue/jobs.ts';
import { queryFirst, type Statement, statement } from '../sql.ts';
import type { EndpointId } from './endpoints.ts';
import type { WebhookWorld } from './world.ts';

/** A delivery that is due: the number its next attempt has, and its place in the schedule. */
export interface Work {
  event_id: EventId;
  event_type: EventType;
  attempt: number;
  step: number;
}

export function deliverJob(endpoint: EndpointId, event: EventId): DeliverJob {
  return { v: 1, kind: 'deliver', endpoint_id: endpoint, event_id: event };
}

/**
 * Takes a delivery up, if it is due, nobody else has, and not too many are under way at its endpoint. Whoever takes it up
 * must record it within the lease; after that it counts as lost and is taken up again.
 */
export async function takeUp(
  { db, now: clock, waits }: Pick<WebhookWorld, 'db' | 'now' | 'waits'>,
  endpoint: EndpointId,
  event: EventId,
): Promise<Work | undefined> {
  const now = clock();
  return queryFirst<Work>(
    db,
    `UPDATE webhook_work SET taken_until = ?1
     WHERE endpoint_id = ?2 AND event_id = ?3 AND due_at <= ?4 AND ${FREE('?5')}
       AND (SELECT COUNT(*) FROM webhook_work WHERE endpoint_id = ?2 AND ${TAKEN('?5')}) < ?6
     RETURNING event_id, event_type, attempt, step`,
    now + waits.webhook_lease_ms,
    endpoint,
    event,
    // Queues wait in whole seconds.
    now + 1_000,
    now,
    LIMITS.webhook_parallel_count_max,
  );
}

/** Longer than any lease: taken up by a clock that ran ahead, and long lost. */
const AHEAD_MS = 3_600_000;

/** Condition under which an attempt at a delivery is under way. */
const TAKEN = (now: string): string => `taken_until > ${now} AND taken_until <= ${now} + ${AHEAD_MS}`;

/** Condition under which none is. */
export const FREE = (now: string): string => `(taken_until IS NULL OR NOT (${TAKEN(now)}))`;

/** Deliveries of an endpoint that are due and wait: as many as there are places free at it, the longest due first. */
export function waiting(endpoint: EndpointId, now: number): Statement {
  return statement(
    `SELECT event_id FROM webhook_work WHERE endpoint_id = ?1 AND due_at <= ?2 AND ${FREE('?2')}
     ORDER BY due_at, event_id
     LIMIT MAX(0, ?3 - (SELECT COUNT(*) FROM webhook_work WHERE endpoint_id = ?1 AND ${TAKEN('?2')}))`,
    endpoint,
    now,
    LIMITS.webhook_parallel_count_max,
  );
}
