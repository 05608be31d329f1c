import { parseId, type TenantId } from '@pmail/core/ids.ts';
import { ok, type Result, refuse } from '@pmail/core/result.ts';
import { firstRow, type TenantRef, tenantStatement } from '@pmail/engine/directory/owners.ts';
import { type RequestContext, reachesTenant } from './context.ts';

/**
 * The tenant that a list is about: the key's own, or the one that the filter `tenant_id` names. Null is all of them. One
 * that is missing is not a tenant with an empty list.
 */
export async function listedTenant(
  { db, key }: RequestContext,
  given: string | undefined,
): Promise<Result<TenantId | null>> {
  if (given === undefined) return ok(key.tenant_id);
  const id = parseId('ten', given);
  if (id === undefined || !reachesTenant(key, id)) return refuse('tenant_not_found');
  const [rows] = await db.batch([tenantStatement(id)]);
  return firstRow<TenantRef>(rows) === undefined ? refuse('tenant_not_found') : ok(id);
}
