import { readMeta, writeMeta } from '../meta.ts';
import type { Sql } from '../sql.ts';
import type { BillingMode, Feature } from './types.ts';

/** Allowances of a tenant. Only mode `metered` refuses anything; the others count and let everything through. */

export interface Allowance {
  granted: number | null;
  used: number;
  held: number;
}

export function billingMode(sql: Sql): BillingMode {
  return (readMeta(sql, 'billing_mode') as BillingMode | undefined) ?? 'disabled';
}

export function readAllowance(sql: Sql, feature: Feature): Allowance {
  const row = sql.first<Allowance>('SELECT granted, used, held FROM allowances WHERE feature = ?', feature);
  return row ?? { granted: null, used: 0, held: 0 };
}

export function changeAllowance(sql: Sql, feature: Feature, change: { used?: number; held?: number }): void {
  sql.run(
    `INSERT INTO allowances (feature, granted, used, held) VALUES (?1, NULL, MAX(0, ?2), MAX(0, ?3))
     ON CONFLICT (feature) DO UPDATE SET used = MAX(0, used + ?2), held = MAX(0, held + ?3)`,
    feature,
    change.used ?? 0,
    change.held ?? 0,
  );
}

/** First instant of the UTC month that holds `now`, and of the next one. */
export function billingPeriod(now: number): { start: number; end: number } {
  const date = new Date(now);
  const start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
  return { start, end: Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) };
}

/** Puts the monthly allowance back to zero when a new month has begun; what is held stays held. */
export function rollPeriod(sql: Sql, now: number): { start: number; end: number } {
  const { start, end } = billingPeriod(now);
  const known = Number(readMeta(sql, 'period_start') ?? 0);
  // A clock that went back a little must not grant the month again; one that had run far ahead is put right.
  const ahead = known - start > 62 * 86_400_000;
  if (known >= start && !ahead) return { start: known, end: Number(readMeta(sql, 'period_end') ?? end) };
  if (known > 0 && !ahead) sql.run("UPDATE allowances SET used = 0 WHERE feature = 'sends'");
  writeMeta(sql, 'period_start', String(start));
  writeMeta(sql, 'period_end', String(end));
  sql.run("DELETE FROM meta WHERE k >= 'limit_reached:' AND k < 'limit_reached;'");
  return { start, end };
}
