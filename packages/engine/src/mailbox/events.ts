import { EVENT_API_VERSION, type EventEnvelope, type EventType } from '@pmail/core/events/types.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { setDeadlineNoLater } from '../alarms.ts';
import { readMeta, writeMeta } from '../meta.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Appends an event to the outbox, inside the transaction of the change it tells. The envelope is serialised here, once:
 * those bytes are what every subscriber gets.
 *
 * @param known id and time of an event that may be emitted again; a second time it is left out
 */
export function emit(
  world: MailboxWorld,
  type: EventType,
  data: Record<string, unknown>,
  known?: { id: EventId; occurred_at: number },
): void {
  const { sql } = world;
  const occurredAt = known?.occurred_at ?? world.now();
  const id = known?.id ?? world.newId('evt', occurredAt);
  if (known !== undefined && sql.first('SELECT 1 FROM outbox WHERE event_id = ?', id) !== undefined) return;
  const sequence = Number(readMeta(sql, 'event_seq') ?? 0) + 1;
  const envelope: EventEnvelope = {
    id,
    type,
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(occurredAt),
    tenant_id: world.owner.tenant_id,
    identity_id: world.owner.identity_id,
    sequence,
    data,
  };
  writeMeta(sql, 'event_seq', String(sequence));
  sql.run(
    'INSERT INTO outbox (seq, event_id, type, payload_json, occurred_at) VALUES (?, ?, ?, ?, ?)',
    sequence,
    id,
    type,
    JSON.stringify(envelope),
    occurredAt,
  );
  setDeadlineNoLater(world, 'outbox', world.now());
}
