import type { EventId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type EventIndexRow, findEvent } from '../directory/events.ts';
import { type Db, queryAll, queryFirst, statement } from '../sql.ts';
import { type EndpointId, listeners, wants } from './endpoints.ts';
import { deliverJob, FREE } from './work.ts';
import type { WebhookWorld } from './world.ts';

/**
 * Finds who subscribed to an event and writes down what has to be delivered, in one transaction with the mark that this
 * was done. Repeating it changes nothing.
 */
export async function fanOut(world: WebhookWorld, id: EventId): Promise<void> {
  const event = await findEvent(world.db, id);
  if (event === undefined || event.fanned_out_at !== null) return;
  const subscribed = (await listeners(world.db, event.tenant_id)).map(({ id: endpoint, ...row }) => ({
    endpoint,
    ...row,
  }));
  const ofSystem = subscribed.length > 0 && (await isOfSystemIdentity(world.db, event));
  const endpoints = subscribed
    .filter((row) => wants(row, { type: event.type, identity_id: event.identity_id, of_system: ofSystem }))
    .map(({ endpoint }) => endpoint);
  const now = world.now();
  await world.db.batch([
    ...endpoints.map((endpoint) =>
      statement(
        `INSERT OR IGNORE INTO webhook_work (endpoint_id, event_id, event_type, attempt, step, due_at)
         SELECT ?1, ?2, ?3, 1, 1, ?4
         WHERE EXISTS (SELECT 1 FROM event_index WHERE id = ?2 AND fanned_out_at IS NULL)
           AND EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = ?1)`,
        endpoint,
        id,
        event.type,
        now,
      ),
    ),
    statement('UPDATE event_index SET fanned_out_at = ? WHERE id = ? AND fanned_out_at IS NULL', now, id),
  ]);
  world.mark('webhook.fanned_out');
  for (const endpoint of endpoints) await world.queue.send(deliverJob(endpoint, id));
}

async function isOfSystemIdentity(db: Db, { identity_id: identity }: EventIndexRow): Promise<boolean> {
  if (identity === null) return false;
  const row = await queryFirst<{ is_system: number }>(db, 'SELECT is_system FROM identities WHERE id = ?', identity);
  return row?.is_system === 1;
}

const PER_SWEEP = 250;

/**
 * Queues again what a queue has lost: events that nobody has fanned out, and deliveries whose time has passed. Events
 * older than an hour stay as they are; by then there is no telling what else is broken, and a replay brings them.
 */
export async function sweepWebhooks(world: Pick<WebhookWorld, 'db' | 'now' | 'queue' | 'waits'>): Promise<number> {
  const now = world.now();
  await pullBack(world.db, now);
  const events = await queryAll<{ id: EventId }>(
    world.db,
    // Of a time ahead of ours are those that were told while a clock ran away.
    `SELECT id FROM event_index WHERE fanned_out_at IS NULL AND occurred_at >= ?
       AND (occurred_at <= ? OR occurred_at > ?)
     ORDER BY occurred_at LIMIT ?`,
    now - LIMITS.fanout_until_ms,
    now - world.waits.webhook_sweep_after_ms,
    now + world.waits.webhook_sweep_after_ms,
    PER_SWEEP,
  );
  // A few of each endpoint, the first of every one before the second of any: a long list keeps nobody from their turn.
  const late = await queryAll<{ endpoint_id: EndpointId; event_id: EventId }>(
    world.db,
    `SELECT endpoint_id, event_id FROM (
       SELECT endpoint_id, event_id, due_at, ROW_NUMBER() OVER (PARTITION BY endpoint_id ORDER BY due_at, event_id) AS nth
       FROM webhook_work WHERE due_at <= ?1 AND ${FREE('?2')})
     WHERE nth <= ?3 ORDER BY nth, due_at LIMIT ?4`,
    now - world.waits.webhook_sweep_after_ms,
    now,
    LIMITS.webhook_parallel_count_max,
    PER_SWEEP,
  );
  for (const { id } of events) await world.queue.send({ v: 1, kind: 'fanout', event_id: id });
  for (const { endpoint_id: endpoint, event_id: event } of late) await world.queue.send(deliverJob(endpoint, event));
  return events.length + late.length;
}

/** Deliveries that were put off by a clock that ran away wait for no time that is so far ahead. */
async function pullBack(db: Db, now: number): Promise<void> {
  await db.batch([statement('UPDATE webhook_work SET due_at = ? WHERE due_at > ?', now, now + LIMITS.wait_ms_max)]);
}
