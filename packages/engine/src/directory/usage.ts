import type { TenantId } from '@pmail/core/ids.ts';
import type { UsageMetric } from '../quota/types.ts';
import { type Db, queryAll } from '../sql.ts';

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
