import type { TenantId } from '@pmail/core/ids.ts';
import { queryAll, statement } from '@pmail/engine/sql.ts';
import type { Env } from '../env.ts';
import { createLog } from '../log.ts';
import { quotaStub } from '../objects/remote.ts';
import { d1 } from '../ports/sql.ts';

const TENANTS_PER_PAGE = 200;

/** Writes today's and yesterday's usage of every tenant to the directory, where the API and invoices read it. */
export async function rollUpUsage(env: Env): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { cron: 'usage' });
  const db = d1(env.DB);
  let last = '';
  for (;;) {
    const tenants = await queryAll<{ id: TenantId; quota_do_id: string }>(
      db,
      'SELECT id, quota_do_id FROM tenants WHERE id > ? ORDER BY id LIMIT ?',
      last,
      TENANTS_PER_PAGE,
    );
    for (const { id, quota_do_id } of tenants) {
      try {
        const stub = quotaStub(env, quota_do_id);
        const days = await stub.usageDays({ v: 1, tenant_id: id, identity_id: null, request_id: 'cron' });
        await db.batch(
          days.map(({ day, metric, value }) =>
            statement(
              `INSERT INTO usage_daily (tenant_id, day, metric, value) VALUES (?, ?, ?, ?)
               ON CONFLICT (tenant_id, day, metric) DO UPDATE SET value = excluded.value`,
              id,
              day,
              metric,
              value,
            ),
          ),
        );
      } catch (error) {
        log('warn', 'usage_roll_up_failed', { tenant_id: id, error: error instanceof Error ? error.name : 'unknown' });
      }
    }
    const end = tenants.at(-1);
    if (end === undefined || tenants.length < TENANTS_PER_PAGE) return;
    last = end.id;
  }
}
