import { billingOf } from '@pmail/engine/directory/tenants.ts';
import { oldDays, pageOfQuotas, writeUsageDays } from '@pmail/engine/directory/usage.ts';
import type { Env } from '../env.ts';
import { createLog } from '../log.ts';
import { quotaStub } from '../objects/remote.ts';
import { d1 } from '../ports/sql.ts';

const TENANTS_PER_PAGE = 200;

/**
 * Writes the usage of every tenant, of today, yesterday and what was missed before, to the directory, where the API reads
 * it. It also enters every quota, which puts back an alarm that the platform has lost, and tells it what the directory
 * grants.
 */
export async function rollUpUsage(env: Env): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { cron: 'usage' });
  const db = d1(env.DB);
  let last = '';
  for (;;) {
    const tenants = await pageOfQuotas(db, last, TENANTS_PER_PAGE);
    for (const tenant of tenants) {
      const { id, quota_do_id } = tenant;
      try {
        const call = { v: 1 as const, tenant_id: id, identity_id: null, request_id: 'cron' };
        const quota = quotaStub(env, quota_do_id);
        const days = await quota.usageDays(call, billingOf(tenant));
        await writeUsageDays(db, id, days);
        // The quota keeps what nobody has written, however long this has been away.
        const old = oldDays(days, Date.now());
        if (old.length > 0) await quota.usageWritten(call, old);
      } catch (error) {
        log('warn', 'usage_roll_up_failed', { tenant_id: id, error: error instanceof Error ? error.name : 'unknown' });
      }
    }
    const end = tenants.at(-1);
    if (end === undefined || tenants.length < TENANTS_PER_PAGE) return;
    last = end.id;
  }
}
