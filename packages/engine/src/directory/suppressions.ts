import type { SuppressionReason } from '@pmail/core/delivery/events.ts';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import type { MessageId, TenantId } from '@pmail/core/ids.ts';
import { type Db, queryAll, queryFirst, type SqlValue, type Statement, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';
import { platformEventStatement } from './policy.ts';

export interface SuppressionInsert {
  tenant_id: TenantId;
  address_hash: string;
  address_hint: string;
  reason: SuppressionReason;
  source_message_id: MessageId | null;
  note: string | null;
  created_at: number;
  /** Unix ms at which it ends by itself; for ever when missing. */
  expires_at?: number | null;
}

export interface SuppressionOwner {
  reason: SuppressionReason;
  source_message_id: string | null;
  created_at: number;
}

/** A row of suppressions: the address stands there only as a hash and as a hint for people. */
export interface SuppressionRow extends SuppressionInsert {
  expires_at: number | null;
}

/**
 * An entry that has run out no longer counts, and is written over. So is one that would end by itself, by one that does
 * not: a complaint must not be forgotten on the day a provider's own suppression ends. Answers a row when it was written.
 */
function insertStatement(insert: SuppressionInsert): Statement {
  return statement(
    `INSERT INTO suppressions
       (tenant_id, address_hash, address_hint, reason, source_message_id, note, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (tenant_id, address_hash) DO UPDATE SET address_hint = excluded.address_hint,
       reason = excluded.reason, source_message_id = excluded.source_message_id, note = excluded.note,
       created_at = excluded.created_at, expires_at = excluded.expires_at
     WHERE suppressions.expires_at <= excluded.created_at
       OR (suppressions.expires_at IS NOT NULL AND excluded.expires_at IS NULL)
     RETURNING created_at`,
    insert.tenant_id,
    insert.address_hash,
    insert.address_hint,
    insert.reason,
    insert.source_message_id,
    insert.note,
    insert.created_at,
    insert.expires_at ?? null,
  );
}

/**
 * Adds an address to a tenant's suppression list unless it stands there for at least as long.
 *
 * @returns the row that stands there now; the caller tells from its source whether this message put it there
 */
export async function suppress(db: Db, insert: SuppressionInsert): Promise<SuppressionOwner> {
  const [, rows = []] = await db.batch([
    insertStatement(insert),
    statement(
      'SELECT reason, source_message_id, created_at FROM suppressions WHERE tenant_id = ? AND address_hash = ?',
      insert.tenant_id,
      insert.address_hash,
    ),
  ]);
  const [row] = rows as unknown as SuppressionOwner[];
  if (row === undefined) throw new Error('suppression neither inserted nor present');
  return row;
}

const STANDS = 'tenant_id = ? AND address_hash = ? AND (expires_at IS NULL OR expires_at > ?)';

export function findSuppression(
  db: Db,
  tenant: TenantId,
  hash: string,
  now: number,
): Promise<SuppressionRow | undefined> {
  return queryFirst<SuppressionRow>(db, `SELECT * FROM suppressions WHERE ${STANDS}`, tenant, hash, now);
}

/**
 * Suppresses an address for good on somebody's word. Only when it was not suppressed for good before is the event told
 * and the entry written in the log; an address that was stays as it is.
 *
 * @returns the row that stands there now, and whether it is new
 */
export async function addSuppression(
  db: Db,
  insert: Omit<SuppressionInsert, 'expires_at'>,
  event: EventEnvelope,
  audit: AuditEntry,
): Promise<{ row: SuppressionRow; created: boolean }> {
  const entry = 'tenant_id = ? AND address_hash = ?';
  const key: SqlValue[] = [insert.tenant_id, insert.address_hash];
  const absent = statement(`NOT EXISTS (SELECT 1 FROM suppressions WHERE ${entry} AND expires_at IS NULL)`, ...key);
  const [, , written = [], rows = []] = await db.batch([
    platformEventStatement(event, insert.created_at, absent),
    auditStatement(audit, absent),
    insertStatement(insert),
    statement(`SELECT * FROM suppressions WHERE ${entry}`, ...key),
  ]);
  const [row] = rows as unknown as SuppressionRow[];
  if (row === undefined) throw new Error('suppression neither inserted nor present');
  return { row, created: written.length > 0 };
}

/**
 * Takes an address off the list as it was seen there: one that has got another reason meanwhile stays, because whoever
 * asked did not know of it.
 *
 * @returns whether it was still there so
 */
export async function removeSuppression(
  db: Db,
  seen: SuppressionRow,
  now: number,
  audit: AuditEntry,
): Promise<boolean> {
  const same = `${STANDS} AND reason = ?`;
  const bindings: SqlValue[] = [seen.tenant_id, seen.address_hash, now, seen.reason];
  const [, removed = []] = await db.batch([
    auditStatement(audit, statement(`EXISTS (SELECT 1 FROM suppressions WHERE ${same})`, ...bindings)),
    statement(`DELETE FROM suppressions WHERE ${same} RETURNING created_at`, ...bindings),
  ]);
  return removed.length > 0;
}

export interface SuppressionFilter {
  address_hash?: string | undefined;
  reason?: SuppressionReason | undefined;
}

/** Those of a tenant that count at `now`, newest first, then by hash. */
export function listSuppressions(
  db: Db,
  tenant: TenantId,
  filter: SuppressionFilter,
  now: number,
  limit: number,
  after: { at: number; id: string } | null,
): Promise<SuppressionRow[]> {
  const where = ['tenant_id = ?', '(expires_at IS NULL OR expires_at > ?)'];
  const values: SqlValue[] = [tenant, now];
  const add = (condition: string, ...bindings: SqlValue[]): void => {
    where.push(condition);
    values.push(...bindings);
  };
  if (filter.address_hash !== undefined) add('address_hash = ?', filter.address_hash);
  if (filter.reason !== undefined) add('reason = ?', filter.reason);
  if (after !== null) add('(created_at, address_hash) < (?, ?)', after.at, after.id);
  return queryAll<SuppressionRow>(
    db,
    `SELECT * FROM suppressions WHERE ${where.join(' AND ')}
     ORDER BY created_at DESC, address_hash DESC LIMIT ?`,
    ...values,
    limit,
  );
}
