import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { type Db, queryAll, statement } from '../sql.ts';

/** Rows that the setup wrote without an object: only the Worker can make object ids. */

export function tenantsWithoutQuota(db: Db, limit: number): Promise<{ id: TenantId }[]> {
  return queryAll<{ id: TenantId }>(db, "SELECT id FROM tenants WHERE quota_do_id = '' LIMIT ?", limit);
}

/** Identities without a mailbox whose tenant has its quota already. */
export function identitiesWithoutMailbox(
  db: Db,
  limit: number,
): Promise<{ id: IdentityId; tenant_id: TenantId; quota_do_id: string }[]> {
  return queryAll(
    db,
    `SELECT i.id, i.tenant_id, t.quota_do_id FROM identities i JOIN tenants t ON t.id = i.tenant_id
     WHERE i.mailbox_do_id = '' AND t.quota_do_id <> '' LIMIT ?`,
    limit,
  );
}

/** Gives a row its object unless it has one. */
export async function adopt(db: Db, table: 'tenants' | 'identities', id: string, objectId: string): Promise<void> {
  const column = table === 'tenants' ? 'quota_do_id' : 'mailbox_do_id';
  await db.batch([statement(`UPDATE ${table} SET ${column} = ? WHERE id = ? AND ${column} = ''`, objectId, id)]);
}
