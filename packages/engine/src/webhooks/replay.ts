import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { WebhookJob } from '@pmail/core/queue/jobs.ts';
import { type AuditEntry, auditStatement } from '../directory/audit.ts';
import type { Queue } from '../ports.ts';
import { type Db, queryAll, type SqlValue, statement } from '../sql.ts';
import { type EndpointRow, wants } from './endpoints.ts';
import type { DeliveryAttempt } from './record.ts';
import { deliverJob } from './work.ts';

export interface DeliveryFilter {
  status?: DeliveryAttempt['status'] | undefined;
  event_type?: EventType | undefined;
  /** Unix ms, exclusive. */
  after?: number | undefined;
}

/** Attempts at an endpoint, newest first. */
export function listDeliveries(
  db: Db,
  endpoint: string,
  filter: DeliveryFilter,
  limit: number,
  after: { at: number; id: string } | null,
): Promise<DeliveryAttempt[]> {
  const where = ['endpoint_id = ?'];
  const values: SqlValue[] = [endpoint];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (filter.status !== undefined) add('status = ?', filter.status);
  if (filter.event_type !== undefined) add('event_type = ?', filter.event_type);
  if (filter.after !== undefined) add('created_at > ?', filter.after);
  if (after !== null) add('(created_at, id) < (?, ?)', after.at, after.id);
  return queryAll<DeliveryAttempt>(
    db,
    `SELECT * FROM webhook_deliveries WHERE ${where.join(' AND ')} ORDER BY created_at DESC, id DESC LIMIT ?`,
    ...values,
    limit,
  );
}

export type ReplayRequest =
  | { event_ids: EventId[] }
  | { since: number; until: number | null; status: DeliveryAttempt['status'] | null };

interface Candidate {
  id: EventId;
  type: EventType;
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
  is_system: number | null;
}

/**
 * Events that may be delivered to an endpoint again: those of its owner that it would be told of today, young enough,
 * and never a test. The oldest come first.
 *
 * @returns undefined when one of the ids asked for is not among them
 */
export async function replayable(
  db: Db,
  endpoint: EndpointRow,
  request: ReplayRequest,
  now: number,
): Promise<{ id: EventId; type: EventType }[] | undefined> {
  const where = ["e.type <> 'webhook.test'", 'e.occurred_at > ?'];
  const values: SqlValue[] = [now - LIMITS.webhook_replay_age_ms_max];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (endpoint.tenant_id !== null) {
    add('e.tenant_id = ?', endpoint.tenant_id);
    // Said to `wants` too, but here it leaves no gap in what a request brings at most.
    add("e.type <> 'webhook.disabled' AND COALESCE(i.is_system, 0) = 0");
  }
  if ('event_ids' in request) add('e.id IN (SELECT value FROM json_each(?))', JSON.stringify(request.event_ids));
  else {
    add('e.occurred_at >= ?', request.since);
    if (request.until !== null) add('e.occurred_at < ?', request.until);
    if (request.status !== null) {
      add(
        `(SELECT d.status FROM webhook_deliveries d WHERE d.endpoint_id = ? AND d.event_id = e.id
          ORDER BY d.attempt DESC LIMIT 1) = ?`,
        endpoint.id,
        request.status,
      );
    }
  }
  const types = JSON.parse(endpoint.event_types_json) as string[];
  if (!types.includes('*')) add('e.type IN (SELECT value FROM json_each(?))', endpoint.event_types_json);
  if (endpoint.identity_ids_json !== null) {
    add('e.identity_id IN (SELECT value FROM json_each(?))', endpoint.identity_ids_json);
  }
  const rows = await queryAll<Candidate>(
    db,
    `SELECT e.id, e.type, e.tenant_id, e.identity_id, i.is_system
     FROM event_index e LEFT JOIN identities i ON i.id = e.identity_id
     WHERE ${where.join(' AND ')} ORDER BY e.occurred_at, e.id LIMIT ?`,
    ...values,
    LIMITS.webhook_replay_events_max,
  );
  const events = rows.filter((row) => wants(endpoint, { ...row, of_system: row.is_system === 1 }));
  if ('event_ids' in request && events.length < new Set(request.event_ids).size) return undefined;
  return events.map(({ id, type }) => ({ id, type }));
}

const PER_BATCH = 50;

/** Puts events on an endpoint's list again: attempts count on, the schedule begins anew. An endpoint that is gone gets none. */
export async function replay(
  db: Db,
  queue: Queue<WebhookJob>,
  endpoint: EndpointRow,
  events: { id: EventId; type: EventType }[],
  now: number,
  audit: AuditEntry,
): Promise<void> {
  await db.batch([auditStatement(audit)]);
  for (let at = 0; at < events.length; at += PER_BATCH) {
    const slice = events.slice(at, at + PER_BATCH);
    await db.batch(
      slice.map(({ id, type }) =>
        statement(
          `INSERT INTO webhook_work (endpoint_id, event_id, event_type, attempt, step, due_at)
           SELECT ?1, ?2, ?3, 1 + COALESCE((SELECT MAX(attempt) FROM webhook_deliveries
             WHERE endpoint_id = ?1 AND event_id = ?2), 0), 1, ?4
           WHERE EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ?1)
           ON CONFLICT (endpoint_id, event_id) DO UPDATE SET step = 1, due_at = MIN(due_at, ?4)`,
          endpoint.id,
          id,
          type,
          now,
        ),
      ),
    );
  }
  // As many as run at once; each that ends brings the next.
  for (const { id } of events.slice(0, LIMITS.webhook_parallel_count_max)) {
    await queue.send(deliverJob(endpoint.id, id));
  }
}

/** Deletes attempts and events that are older than they have to be kept. @returns whether there may be more */
export async function deleteOldDeliveries(db: Db, before: number, limit: number): Promise<boolean> {
  const rows = await queryAll<{ id: string }>(
    db,
    `DELETE FROM webhook_deliveries WHERE id IN (
       SELECT id FROM webhook_deliveries WHERE created_at < ? ORDER BY created_at LIMIT ?) RETURNING id`,
    before,
    limit,
  );
  return rows.length === limit;
}
