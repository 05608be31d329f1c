import { billingOf } from '@pmail/engine/directory/tenants.ts';
import { oldDays, pageOfQuotas, type QuotaOwner, writeUsageDays } from '@pmail/engine/directory/usage.ts';
import type { Db } from '@pmail/engine/sql.ts';
import type { Env } from '../env.ts';
import { createLog } from '../log.ts';
import { quotaStub } from '../objects/remote.ts';
import { d1 } from '../ports/sql.ts';

/** How many tenants have their turn in one run. Each takes three calls, of which an invocation may make a thousand. */
const TENANTS_PER_RUN = 200;
const TENANTS_PER_PAGE = 1_000;
const RUN_EVERY_MS = 15 * 60_000;

/**
 * Writes the usage of tenants, of today, yesterday and what was missed before, to the directory, where the API reads it. It
 * also enters their quotas, which puts back an alarm that the platform has lost, and tells each what the directory grants.
 *
 * @param most how many tenants have their turn
 */
export async function rollUpUsage(env: Env, now: number, most = TENANTS_PER_RUN): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { cron: 'usage' });
  const db = d1(env.DB);
  for (const tenant of inTurn(await allQuotas(db), now, most)) {
    const { id, quota_do_id } = tenant;
    try {
      const call = { v: 1 as const, tenant_id: id, identity_id: null, request_id: 'cron' };
      const quota = quotaStub(env, quota_do_id);
      const days = await quota.usageDays(call, billingOf(tenant));
      await writeUsageDays(db, id, days);
      // The quota keeps what nobody has written, however long this has been away.
      const old = oldDays(days, now);
      if (old.length > 0) await quota.usageWritten(call, old);
    } catch (error) {
      log('warn', 'usage_roll_up_failed', { tenant_id: id, error: error instanceof Error ? error.name : 'unknown' });
    }
  }
}

/**
 * Those of the run at this time: the runs take the tenants in turn, `most` at a time. The clock says whose turn it is, so
 * no place has to be kept, and a run that dies holds up nobody but its own until they come round again.
 */
function inTurn(tenants: QuotaOwner[], now: number, most: number): QuotaOwner[] {
  const turns = Math.max(1, Math.ceil(tenants.length / most));
  // A run that begins a little before or after its quarter of an hour is still that one.
  const first = (Math.round(now / RUN_EVERY_MS) % turns) * most;
  return tenants.slice(first, first + most);
}

async function allQuotas(db: Db): Promise<QuotaOwner[]> {
  const all: QuotaOwner[] = [];
  for (;;) {
    const page = await pageOfQuotas(db, all.at(-1)?.id ?? '', TENANTS_PER_PAGE);
    all.push(...page);
    if (page.length < TENANTS_PER_PAGE) return all;
  }
}
