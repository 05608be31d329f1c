import { utcDay } from '@pmail/core/time.ts';
import { readMeta, writeMeta } from '../meta.ts';
import { billingMode, readAllowance, rollPeriod } from './billing.ts';
import type { QuotaEngineWorld } from './reserve.ts';
import { type Billing, type BillingMode, FEATURES, type Granted, type UsageAnswer } from './types.ts';

/** What the tenant may use and has used. Outside mode `metered` nothing is limited. */
export function getUsage(world: QuotaEngineWorld): UsageAnswer {
  const { sql } = world;
  return sql.transaction(() => {
    const period = rollPeriod(sql, world.now());
    const billing = billingMode(sql);
    const features = FEATURES.map((feature) => {
      const { granted, used, held } = readAllowance(sql, feature);
      const limit = billing === 'metered' ? granted : null;
      return {
        feature,
        granted: limit,
        used,
        held,
        remaining: limit === null ? null : Math.max(0, limit - used - held),
        unlimited: limit === null,
        resets_at: feature === 'sends' ? period.end : null,
      };
    });
    return { billing, period_start: period.start, period_end: period.end, features };
  });
}

/**
 * Takes over what the directory grants, unless something later is known already. It arrives with each change, and again
 * with every roll-up of usage, should the first have been lost.
 */
export function takeBilling(world: QuotaEngineWorld, { mode, granted, as_of: asOf }: Billing): void {
  if (asOf <= Number(readMeta(world.sql, 'billing_as_of') ?? 0)) return;
  world.sql.transaction(() => {
    writeBilling(world, mode, granted);
    writeMeta(world.sql, 'billing_as_of', String(asOf));
  });
}

/** Sets the mode and, for `metered`, what is granted; a feature left out is unlimited. */
export function setBilling(world: QuotaEngineWorld, mode: BillingMode, granted: Granted): void {
  world.sql.transaction(() => writeBilling(world, mode, granted));
}

function writeBilling({ sql, now }: QuotaEngineWorld, mode: BillingMode, granted: Granted): void {
  rollPeriod(sql, now());
  writeMeta(sql, 'billing_mode', mode);
  for (const feature of FEATURES) {
    sql.run(
      `INSERT INTO allowances (feature, granted) VALUES (?1, ?2)
       ON CONFLICT (feature) DO UPDATE SET granted = ?2`,
      feature,
      mode === 'metered' ? (granted[feature] ?? null) : null,
    );
  }
}

/** What was used on a UTC day (`YYYY-MM-DD`) of one metric. */
export interface UsageDay {
  day: string;
  metric: string;
  value: number;
}

const USAGE = "metric >= 'usage:' AND metric < 'usage;'";

/** Usage counters of today, yesterday and every day before that the roll-up has not said to have written. */
export function usageDays(world: QuotaEngineWorld): UsageDay[] {
  return world.sql
    .all<{ metric: string; window: string; value: number }>(
      `SELECT metric, window, value FROM counters WHERE ${USAGE} AND window <= ?`,
      utcDay(world.now()),
    )
    .map(({ metric, window, value }) => ({ day: window, metric: metric.slice('usage:'.length), value }));
}

/** The roll-up has written these days. Those that are over for good are dropped; nothing is counted on them any more. */
export function usageWritten(world: QuotaEngineWorld, days: string[]): void {
  const { sql } = world;
  const over = days.filter((day) => isOverForGood(day, world.now()));
  sql.run(`DELETE FROM counters WHERE ${USAGE} AND window IN (SELECT value FROM json_each(?))`, JSON.stringify(over));
}

/** Whether nothing can be counted on a day any more, also by a clock that is behind: yesterday may still change. */
export function isOverForGood(day: string, now: number): boolean {
  return day < utcDay(now - 86_400_000);
}
