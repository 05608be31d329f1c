import type { TenantId } from '@pmail/core/ids.ts';
import type { UsageMetric } from '../quota/types.ts';
import { isOverForGood, type UsageDay } from '../quota/usage.ts';
import { type Db, queryAll, statement } from '../sql.ts';
import type { TenantRow } from './tenants.ts';

/** Usage of a tenant in one UTC day, as the roll-up last wrote it. */
export interface UsageDayRow {
  /** `YYYY-MM-DD` */
  day: string;
  metric: UsageMetric;
  value: number;
}

/** Rows of the days from `from` to `to`, both included; a day or metric without any has none. */
export function readUsageDays(db: Db, tenant: TenantId, from: string, to: string): Promise<UsageDayRow[]> {
  return queryAll<UsageDayRow>(
    db,
    'SELECT day, metric, value FROM usage_daily WHERE tenant_id = ? AND day BETWEEN ? AND ? ORDER BY day',
    tenant,
    from,
    to,
  );
}

/** A tenant's quota object, and what the directory grants the tenant. */
export type QuotaOwner = Pick<TenantRow, 'id' | 'quota_do_id' | 'billing_mode' | 'granted_json' | 'updated_at'>;

/** Tenants with their quota objects, in order of their ids; those after `after`. */
export function pageOfQuotas(db: Db, after: string, limit: number): Promise<QuotaOwner[]> {
  return queryAll<QuotaOwner>(
    db,
    `SELECT id, quota_do_id, billing_mode, granted_json, updated_at FROM tenants
     WHERE id > ? AND quota_do_id <> '' ORDER BY id LIMIT ?`,
    after,
    limit,
  );
}

/** The days, where the quota keeps some that it could forget once they are written. */
export function oldDays(days: UsageDay[], now: number): string[] {
  return [...new Set(days.map(({ day }) => day))].filter((day) => isOverForGood(day, now));
}

/** Writes counters over what the roll-up wrote before; a day is written again until it is over. */
export async function writeUsageDays(db: Db, tenant: TenantId, days: UsageDay[]): Promise<void> {
  await db.batch(
    days.map(({ day, metric, value }) =>
      statement(
        `INSERT INTO usage_daily (tenant_id, day, metric, value) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant_id, day, metric) DO UPDATE SET value = excluded.value`,
        tenant,
        day,
        metric,
        value,
      ),
    ),
  );
}
