import { adopt, identitiesWithoutMailbox, tenantsWithoutQuota } from '@pmail/engine/directory/unminted.ts';
import type { Env } from '../env.ts';
import { newMailboxId, newQuotaId } from '../objects/new-id.ts';
import { mailboxStub, quotaStub } from '../objects/remote.ts';
import { d1 } from '../ports/sql.ts';

const PER_RUN = 20;

/**
 * Makes the objects of rows that the setup wrote. An object gets its owner before the row names it, so a run that dies
 * in between leaves only an object that nobody knows; of two runs at once the row keeps the first.
 */
export async function mintObjects(env: Env): Promise<void> {
  const db = d1(env.DB);
  for (const { id } of await tenantsWithoutQuota(db, PER_RUN)) {
    const objectId = newQuotaId(env);
    await quotaStub(env, objectId).init(id);
    await adopt(db, 'tenants', id, objectId);
  }
  for (const { id, tenant_id, quota_do_id } of await identitiesWithoutMailbox(db, PER_RUN)) {
    const objectId = newMailboxId(env);
    const call = { v: 1 as const, tenant_id, identity_id: id, request_id: 'cron' };
    await mailboxStub(env, objectId).init(call, { quota_do_id, created: null });
    await adopt(db, 'identities', id, objectId);
  }
}
