import type { Id, TenantId } from '@pmail/core/ids.ts';
import { type Db, queryAll, type Statement, statement } from '../sql.ts';

export interface AuditEntry {
  id: Id<'aud'>;
  tenant_id: TenantId | null;
  actor_key_id: string | null;
  action: string;
  target_type: string | null;
  target_id: string | null;
  details: Record<string, unknown> | null;
  request_id: string | null;
  at: number;
}

/**
 * A statement for the batch of the change it records. Repeating it with the same id changes nothing.
 *
 * @param onlyIf a condition (the text after WHERE) under which the entry is written, for a change that may not happen
 */
export function auditStatement(entry: AuditEntry, onlyIf?: Statement): Statement {
  return statement(
    `INSERT OR IGNORE INTO audit_log
       (id, tenant_id, actor_key_id, action, target_type, target_id, details_json, request_id, created_at)
     SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${onlyIf?.sql ?? '1'}`,
    entry.id,
    entry.tenant_id,
    entry.actor_key_id,
    entry.action,
    entry.target_type,
    entry.target_id,
    entry.details === null ? null : JSON.stringify(entry.details),
    entry.request_id,
    entry.at,
    ...(onlyIf?.bindings ?? []),
  );
}

/** Details of those entries that stand in the log, by id. */
export async function readAuditDetails(
  db: Db,
  ids: AuditEntry['id'][],
): Promise<Map<AuditEntry['id'], AuditEntry['details']>> {
  const rows = await queryAll<{ id: AuditEntry['id']; details_json: string | null }>(
    db,
    'SELECT id, details_json FROM audit_log WHERE id IN (SELECT value FROM json_each(?))',
    JSON.stringify(ids),
  );
  const details = (text: string | null): AuditEntry['details'] =>
    text === null ? null : (JSON.parse(text) as Record<string, unknown>);
  return new Map(rows.map((row) => [row.id, details(row.details_json)]));
}
