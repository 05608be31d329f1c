import { EVENT_API_VERSION, type EventEnvelope, type EventType } from '@pmail/core/events/types.ts';
import type { EventId, Id } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { isFinal, type WebhookResult } from '@pmail/core/webhooks/outcome.ts';
import { webhookWaitMs } from '@pmail/core/webhooks/schedule.ts';
import { platformEventStatement } from '../directory/policy.ts';
import { type Statement, statement } from '../sql.ts';
import type { EndpointId, EndpointRow } from './endpoints.ts';
import { deliverJob, type Work, waiting } from './work.ts';
import type { WebhookWorld } from './world.ts';

/** A row of webhook_deliveries. */
export interface DeliveryAttempt {
  id: Id<'dlv'>;
  endpoint_id: EndpointId;
  tenant_id: string | null;
  event_id: EventId;
  event_type: EventType;
  attempt: number;
  status: 'succeeded' | 'failed' | 'dead';
  http_status: number | null;
  error: string | null;
  duration_ms: number | null;
  next_attempt_at: number | null;
  created_at: number;
}

export type AttemptResult = WebhookResult & { started: number; duration_ms: number };

/** Writes an attempt down with all that follows from it: the next one, or the end; the endpoint's run of failures. */
export async function recordAttempt(
  world: WebhookWorld,
  endpoint: EndpointRow,
  work: Work,
  result: AttemptResult,
): Promise<DeliveryAttempt> {
  const { db } = world;
  const planned = result.error === null || isFinal(result.error) ? null : webhookWaitMs(work.step, world.random());
  const wait = planned === null ? null : Math.min(planned, world.waits.webhook_wait_ms_max);
  const next = wait === null ? null : world.now() + wait;
  const row = attemptRow(world, endpoint, work, result, next);
  const disabled = disabledEvent(world, endpoint, result);
  const results = await db.batch([
    insertAttempt(row),
    next === null
      ? statement(
          'DELETE FROM webhook_work WHERE endpoint_id = ? AND event_id = ? AND attempt = ?',
          endpoint.id,
          work.event_id,
          work.attempt,
        )
      : statement(
          `UPDATE webhook_work SET attempt = attempt + 1, step = step + 1, due_at = ?, taken_until = NULL
           WHERE endpoint_id = ? AND event_id = ? AND attempt = ?`,
          next,
          endpoint.id,
          work.event_id,
          work.attempt,
        ),
    waiting(endpoint.id, world.now()),
    ...endpointStatements(world, endpoint, row, disabled),
  ]);
  world.mark('webhook.recorded');
  const following = (results[2] ?? []) as unknown as { event_id: EventId }[];
  for (const { event_id: event } of following) await world.queue.send(deliverJob(endpoint.id, event));
  // Should the platform not be told now, the sweep does it.
  if (results.at(-1)?.[0]?.['disabled'] === 1) await world.queue.send({ v: 1, kind: 'fanout', event_id: disabled.id });
  if (wait !== null && wait <= LIMITS.queue_delay_ms_max) {
    await world.queue.send(deliverJob(endpoint.id, work.event_id), wait);
  }
  return row;
}

export function attemptRow(
  world: Pick<WebhookWorld, 'newId' | 'now'>,
  endpoint: Pick<EndpointRow, 'id' | 'tenant_id'>,
  work: Work,
  { error, http_status, started, duration_ms }: AttemptResult,
  next: number | null,
): DeliveryAttempt {
  return {
    id: world.newId('dlv', started),
    endpoint_id: endpoint.id,
    tenant_id: endpoint.tenant_id,
    event_id: work.event_id,
    event_type: work.event_type,
    attempt: work.attempt,
    status: error === null ? 'succeeded' : next === null ? 'dead' : 'failed',
    http_status,
    error,
    duration_ms,
    next_attempt_at: next,
    created_at: started,
  };
}

/** Of two records of one attempt the first stays. */
export function insertAttempt(row: DeliveryAttempt): Statement {
  return statement(
    `INSERT OR IGNORE INTO webhook_deliveries (id, endpoint_id, tenant_id, event_id, event_type, attempt, status,
       http_status, error, duration_ms, next_attempt_at, created_at)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12
     WHERE EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ?2)`,
    row.id,
    row.endpoint_id,
    row.tenant_id,
    row.event_id,
    row.event_type,
    row.attempt,
    row.status,
    row.http_status,
    row.error,
    row.duration_ms,
    row.next_attempt_at,
    row.created_at,
  );
}

/** Failures of ours, and those of an endpoint that was not called, say nothing about it. */
const NOT_THE_ENDPOINTS = ['event_unavailable', 'secret_unavailable', 'endpoint_disabled'];

/**
 * What an attempt does to its endpoint. Others run at the same time, so all is worked out from the row as it is then, and
 * an attempt whose record came second counts for nothing.
 */
function endpointStatements(
  world: WebhookWorld,
  { id }: EndpointRow,
  attempt: DeliveryAttempt,
  event: EventEnvelope,
): Statement[] {
  const { error } = attempt;
  if (error === null) return [forgetFailures(id)];
  if (NOT_THE_ENDPOINTS.includes(error)) return [];
  const now = world.now();
  const recorded = 'EXISTS (SELECT 1 FROM webhook_deliveries WHERE id = ?)';
  const enough =
    error === 'status_410'
      ? statement('enabled = 1')
      : statement(
          'enabled = 1 AND consecutive_failures >= ? AND first_failure_at <= ?',
          LIMITS.webhook_failures_count_max,
          now - LIMITS.webhook_failures_spread_ms,
        );
  const over = statement(`id = ? AND ${enough.sql} AND ${recorded}`, id, ...enough.bindings, attempt.id);
  return [
    statement(
      `UPDATE webhook_endpoints SET consecutive_failures = consecutive_failures + 1,
         first_failure_at = COALESCE(first_failure_at, ?) WHERE id = ? AND ${recorded}`,
      now,
      id,
      attempt.id,
    ),
    platformEventStatement(
      event,
      now,
      statement(`EXISTS (SELECT 1 FROM webhook_endpoints WHERE ${over.sql})`, ...over.bindings),
    ),
    statement(
      `UPDATE webhook_endpoints SET enabled = 0, disabled_reason = 'failing', updated_at = MAX(?, updated_at + 1)
       WHERE ${over.sql} RETURNING 1 AS disabled`,
      now,
      ...over.bindings,
    ),
  ];
}

/** What the platform is told when the attempt was one too many. */
function disabledEvent(
  world: Pick<WebhookWorld, 'newId' | 'now'>,
  endpoint: EndpointRow,
  { error }: AttemptResult,
): EventEnvelope {
  const now = world.now();
  return {
    id: world.newId('evt', now),
    type: 'webhook.disabled',
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(now),
    tenant_id: endpoint.tenant_id,
    identity_id: null,
    sequence: null,
    data: { webhook_id: endpoint.id, reason: error === 'status_410' ? 'gone' : 'failing' },
  };
}

export function forgetFailures(id: EndpointId): Statement {
  return statement(
    `UPDATE webhook_endpoints SET consecutive_failures = 0, first_failure_at = NULL
     WHERE id = ? AND consecutive_failures > 0`,
    id,
  );
}
