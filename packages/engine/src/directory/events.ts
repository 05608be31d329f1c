import type { EventType } from '@pmail/core/events/types.ts';
import type { EventId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { Dispatched, OutboxEvent } from '../ports.ts';
import { type Db, placeholders, queryAll, queryFirst, type SqlValue, type Statement, statement } from '../sql.ts';

/** The index of all events. A row says where an event is kept; only events of the platform hold their bytes here. */
export interface EventIndexRow {
  id: EventId;
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
  type: EventType;
  sequence: number | null;
  owner_kind: 'mailbox' | 'domain' | 'job' | 'platform';
  owner_id: string;
  payload_json: string | null;
  occurred_at: number;
  /** When its subscribers were found; null while that is to be done. */
  fanned_out_at: number | null;
}

/**
 * Adds the events of one mailbox; those that stand there already stay as they are. A mailbox counts its events upwards
 * for ever, so other events at the numbers of the batch or above mean that its storage was put back to an earlier time:
 * then nothing is added. Where nobody listens, an event counts as told at once.
 */
export async function indexEvents(db: Db, events: OutboxEvent[], now: number): Promise<Indexed> {
  const [first] = events;
  if (first === undefined) return { taken: null, known: [], listened: false };
  const listener = 'SELECT 1 FROM webhook_endpoints WHERE enabled = 1 AND (tenant_id IS NULL OR tenant_id = ?5)';
  const batch = JSON.stringify(events.map(({ id, sequence }) => [id, sequence]));
  // One of the batch under a number of before is another too: what follows must not come to stand at that number.
  const others = `FROM event_index WHERE owner_id = ?1 AND sequence >= ?2
    AND NOT EXISTS (SELECT 1 FROM json_each(?3) AS batch
      WHERE batch.value ->> 0 = event_index.id AND batch.value ->> 1 = event_index.sequence)`;
  const [rows = [], listening = [], present = []] = await db.batch([
    statement(`SELECT MAX(sequence) AS last ${others}`, first.identity_id, first.sequence, batch),
    statement(listener.replace('?5', '?1'), first.tenant_id),
    statement('SELECT id, sequence FROM event_index WHERE id IN (SELECT value ->> 0 FROM json_each(?))', batch),
    ...events.map((event) =>
      statement(
        `INSERT OR IGNORE INTO event_index
           (id, tenant_id, identity_id, type, sequence, owner_kind, owner_id, occurred_at, fanned_out_at)
         SELECT ?4, ?5, ?1, ?6, ?7, 'mailbox', ?1, ?8, CASE WHEN EXISTS (${listener}) THEN NULL ELSE ?9 END
         WHERE NOT EXISTS (SELECT 1 ${others})`,
        first.identity_id,
        first.sequence,
        batch,
        event.id,
        event.tenant_id,
        event.type,
        event.sequence,
        event.occurred_at,
        now,
      ),
    ),
  ]);
  return {
    taken: (rows[0]?.['last'] as number | null | undefined) ?? null,
    known: present.map(({ id, sequence }) => ({ id: id as EventId, sequence: Number(sequence) })),
    listened: listening.length > 0,
  };
}

export interface Indexed extends Dispatched {
  /** Whether any endpoint may want to hear of them. */
  listened: boolean;
}

/** The highest number among a mailbox's events, as the first row's `last`. */
export function lastSequenceStatement(identity: IdentityId): Statement {
  return statement('SELECT MAX(sequence) AS last FROM event_index WHERE owner_id = ?', identity);
}

export async function lastSequence(db: Db, identity: IdentityId): Promise<number | null> {
  const [rows = []] = await db.batch([lastSequenceStatement(identity)]);
  return (rows[0]?.['last'] as number | null | undefined) ?? null;
}

export interface EventFilter {
  tenant_id?: TenantId | undefined;
  identity_id?: IdentityId | undefined;
  types?: EventType[] | undefined;
  /** Unix ms, both exclusive. */
  after?: number | undefined;
  before?: number | undefined;
  /** The system identity exists for platform keys alone. */
  with_system: boolean;
  /** Types whose names start so are left out: the key may not read them. */
  hidden_prefixes: string[];
}

/** Newest first by time of occurrence, then id. */
export function listEvents(
  db: Db,
  filter: EventFilter,
  limit: number,
  after: { at: number; id: string } | null,
): Promise<EventIndexRow[]> {
  const where: string[] = [];
  const values: SqlValue[] = [];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (filter.tenant_id !== undefined) add('tenant_id = ?', filter.tenant_id);
  if (filter.identity_id !== undefined) add('identity_id = ?', filter.identity_id);
  if (!filter.with_system) {
    add('(identity_id IS NULL OR identity_id NOT IN (SELECT id FROM identities WHERE is_system = 1))');
  }
  if (filter.types !== undefined) add(`type IN (${placeholders(filter.types.length)})`, ...filter.types);
  for (const prefix of filter.hidden_prefixes) add('substr(type, 1, ?) <> ?', prefix.length, prefix);
  if (filter.after !== undefined) add('occurred_at > ?', filter.after);
  if (filter.before !== undefined) add('occurred_at < ?', filter.before);
  if (after !== null) add('(occurred_at, id) < (?, ?)', after.at, after.id);
  const condition = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
  return queryAll<EventIndexRow>(
    db,
    `SELECT * FROM event_index ${condition} ORDER BY occurred_at DESC, id DESC LIMIT ?`,
    ...values,
    limit,
  );
}

export function findEvent(db: Db, id: EventId): Promise<EventIndexRow | undefined> {
  return queryFirst<EventIndexRow>(db, 'SELECT * FROM event_index WHERE id = ?', id);
}
