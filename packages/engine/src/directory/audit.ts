import type { Id, TenantId } from '@pmail/core/ids.ts';
import { type Statement, statement } from '../sql.ts';

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
