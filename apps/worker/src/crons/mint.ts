import { adopt, identitiesWithoutMailbox, tenantsWithoutQuota } from '@pmail/engine/directory/unminted.ts';
import type { Env } from '../env.ts';
import { createLog, errorPlace } from '../log.ts';
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
  const quotas = await makeEach(env, await tenantsWithoutQuota(db, PER_RUN), async ({ id }) => {
    const objectId = newQuotaId(env);
    await quotaStub(env, objectId).init(id);
    await adopt(db, 'tenants', id, objectId);
  });
  // Those of a tenant that has got its quota just now are among them.
  const waiting = await identitiesWithoutMailbox(db, PER_RUN);
  const mailboxes = await makeEach(env, waiting, async ({ id, tenant_id, quota_do_id }) => {
    const objectId = newMailboxId(env);
    const call = { v: 1 as const, tenant_id, identity_id: id, request_id: 'cron' };
    await mailboxStub(env, objectId).init(call, { quota_do_id, last_sequence: null, created: null });
    await adopt(db, 'identities', id, objectId);
  });
  if (!quotas || !mailboxes) throw new Error('objects were not made');
}

/** Makes the object of each row, whatever became of the others; false when one was not made. */
async function makeEach<T extends { id: string }>(
  env: Env,
  rows: T[],
  make: (row: T) => Promise<void>,
): Promise<boolean> {
  let all = true;
  for (const row of rows) {
    try {
      await make(row);
    } catch (error) {
      all = false;
      createLog(env.PM_LOG_LEVEL, { cron: 'mint' })('warn', 'object_not_made', {
        owner_id: row.id,
        error: errorPlace(error),
      });
    }
  }
  return all;
}
