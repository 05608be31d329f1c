import type { TenantId } from '@pmail/core/ids.ts';
import type { ListDirection, ListKind } from '@pmail/core/policy/list-entry.ts';
import { type Db, queryAll, queryFirst, type SqlValue, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';

/** The allow and block lists of tenants, for mail that comes in and mail that goes out. */

export interface ListRef {
  tenant_id: TenantId;
  direction: ListDirection;
  kind: ListKind;
}

/** A row of sender_lists. */
export interface ListEntryRow extends ListRef {
  /** In its one spelling. */
  entry: string;
  note: string | null;
  created_at: number;
}

const OF_LIST = 'tenant_id = ? AND direction = ? AND kind = ?';
const ITSELF = `${OF_LIST} AND entry = ?`;

function keyOf({ tenant_id, direction, kind }: ListRef, ...entry: [string] | []): SqlValue[] {
  return [tenant_id, direction, kind, ...entry];
}

/** Newest first, then by entry. */
export function listEntries(
  db: Db,
  list: ListRef,
  limit: number,
  after: { at: number; id: string } | null,
): Promise<ListEntryRow[]> {
  return queryAll<ListEntryRow>(
    db,
    `SELECT * FROM sender_lists WHERE ${OF_LIST} ${after === null ? '' : 'AND (created_at, entry) < (?, ?)'}
     ORDER BY created_at DESC, entry DESC LIMIT ?`,
    ...keyOf(list),
    ...(after === null ? [] : [after.at, after.id]),
    limit,
  );
}

export function findListEntry(db: Db, list: ListRef, entry: string): Promise<ListEntryRow | undefined> {
  return queryFirst<ListEntryRow>(db, `SELECT * FROM sender_lists WHERE ${ITSELF}`, ...keyOf(list, entry));
}

/**
 * Puts an entry on a list, or gives the one that stands there this note.
 *
 * @returns the row after it, and whether it is new
 */
export async function putListEntry(
  db: Db,
  row: ListEntryRow,
  audit: AuditEntry,
): Promise<{ row: ListEntryRow; created: boolean }> {
  const [before = [], [written] = []] = await db.batch([
    statement(`SELECT 1 FROM sender_lists WHERE ${ITSELF}`, ...keyOf(row, row.entry)),
    statement(
      `INSERT INTO sender_lists (tenant_id, direction, kind, entry, note, created_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (tenant_id, direction, kind, entry) DO UPDATE SET note = excluded.note RETURNING *`,
      ...keyOf(row, row.entry),
      row.note,
      row.created_at,
    ),
    auditStatement(audit),
  ]);
  return { row: written as unknown as ListEntryRow, created: before.length === 0 };
}

/** @returns whether it was there */
export async function deleteListEntry(db: Db, list: ListRef, entry: string, audit: AuditEntry): Promise<boolean> {
  const key = keyOf(list, entry);
  const [, removed = []] = await db.batch([
    auditStatement(audit, statement(`EXISTS (SELECT 1 FROM sender_lists WHERE ${ITSELF})`, ...key)),
    statement(`DELETE FROM sender_lists WHERE ${ITSELF} RETURNING entry`, ...key),
  ]);
  return removed.length > 0;
}
