import { type AlarmMemory, setDeadlineNoLater } from '../alarms.ts';
import { readMeta, writeMeta } from '../meta.ts';
import { billingMode, changeAllowance, readAllowance, rollPeriod } from './billing.ts';
import { addToCounter, readCounter } from './counters.ts';
import { currentDay } from './day.ts';
import type { Feature, QuotaWarning, QuotaWorld, ReserveAnswer, ReserveRequest } from './types.ts';

export type QuotaEngineWorld = QuotaWorld & { alarms: AlarmMemory };

/**
 * Holds the allowance for a send and counts it against the day's caps, in one transaction: the hold is checked first,
 * and when either refuses neither is kept. Repeating a reserve with the same ref answers as before and changes nothing.
 */
export function reserve(world: QuotaEngineWorld, request: ReserveRequest): ReserveAnswer {
  const { sql, mark } = world;
  const now = world.now();
  return sql.transaction(() => {
    const { ref, identity_id: identity } = request;
    if (sql.first('SELECT 1 FROM applied WHERE ref = ? AND n = 0', ref) !== undefined) return { kind: 'released' };
    const day = currentDay(sql, request.timezone, now);
    const identityMetric = `sends:${identity}`;
    const held = sql.first<{ window: string }>("SELECT window FROM holds WHERE feature = 'sends' AND ref = ?", ref);
    if (held !== undefined) {
      const tenantUsed = request.tenant_cap === null ? null : readCounter(sql, 'sends', held.window);
      const identityUsed = readCounter(sql, identityMetric, held.window);
      return { kind: 'ok', identity_used: identityUsed, tenant_used: tenantUsed, day: held.window, warnings: [] };
    }
    const denied = checkAllowance(world, request, now);
    if (denied !== null) return denied;
    if (readCounter(sql, identityMetric, day.window) + 1 > request.identity_cap) {
      return { kind: 'cap_reached', scope: 'identity', resets_at: day.ends_at };
    }
    if (request.tenant_cap !== null && readCounter(sql, 'sends', day.window) + 1 > request.tenant_cap) {
      return { kind: 'cap_reached', scope: 'tenant', resets_at: day.ends_at };
    }
    const expiresAt = now + world.waits.hold_ttl_ms;
    sql.run(
      `INSERT INTO holds (feature, units, ref, expires_at, identity_id, window, tenant_counted)
       VALUES ('sends', ?, ?, ?, ?, ?, ?)`,
      request.units,
      ref,
      expiresAt,
      identity,
      day.window,
      request.tenant_cap === null ? 0 : 1,
    );
    mark('quota.in_transaction');
    changeAllowance(sql, 'sends', { held: request.units });
    const identityUsed = addToCounter(sql, identityMetric, day.window, 1);
    const tenantUsed = request.tenant_cap === null ? null : addToCounter(sql, 'sends', day.window, 1);
    setDeadlineNoLater(world, 'holds', expiresAt);
    const warnings = [
      ...warn(world, day.window, 'identity', identityMetric, identityUsed, request.identity_cap),
      ...(tenantUsed === null || request.tenant_cap === null
        ? []
        : warn(world, day.window, 'tenant', 'sends', tenantUsed, request.tenant_cap)),
    ];
    return { kind: 'ok', identity_used: identityUsed, tenant_used: tenantUsed, day: day.window, warnings };
  });
}

function checkAllowance(world: QuotaEngineWorld, request: ReserveRequest, now: number): ReserveAnswer | null {
  const { sql } = world;
  const period = rollPeriod(sql, now);
  if (billingMode(sql) !== 'metered') return null;
  const sends = readAllowance(sql, 'sends');
  if (sends.granted !== null && sends.used + sends.held + request.units > sends.granted) {
    return deny(world, 'sends', sends.granted, sends.used, period);
  }
  for (const gate of request.gates) {
    const { granted, used } = readAllowance(sql, gate);
    if (granted !== null && used > granted) return deny(world, gate, granted, used, period);
  }
  return null;
}

function deny(
  { sql }: QuotaEngineWorld,
  feature: Feature,
  granted: number,
  used: number,
  period: { start: number; end: number },
): ReserveAnswer {
  const key = `limit_reached:${feature}:${period.start}`;
  const first = readMeta(sql, key) === undefined;
  if (first) writeMeta(sql, key, '1');
  const resetsAt = feature === 'sends' ? period.end : null;
  return { kind: 'denied', feature, granted, used, resets_at: resetsAt, first_in_period: first };
}

/** A warning the first time that a counter reaches 80 % and 100 % of its cap in a day. */
function warn(
  { sql }: QuotaEngineWorld,
  window: string,
  scope: QuotaWarning['scope'],
  metric: string,
  used: number,
  limit: number,
): QuotaWarning[] {
  const warnings: QuotaWarning[] = [];
  for (const percent of [80, 100] as const) {
    if (limit <= 0 || used * 100 < limit * percent) continue;
    if (addToCounter(sql, `warned:${metric}:${percent}`, window, 1) === 1) {
      warnings.push({ scope, percent, used, limit });
    }
  }
  return warnings;
}
