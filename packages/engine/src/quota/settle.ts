import { utcDay } from '@pmail/core/time.ts';
import { setDeadlineNoLater } from '../alarms.ts';
import type { Sql } from '../sql.ts';
import { countAccepted } from './accepted.ts';
import { changeAllowance, rollPeriod } from './billing.ts';
import { addToCounter } from './counters.ts';
import type { QuotaEngineWorld } from './reserve.ts';
import type { QuotaTask } from './types.ts';

interface Hold {
  units: number;
  identity_id: string;
  window: string;
  tenant_counted: number;
}

/**
 * Applies what a mailbox reports about a send. Every task carries its send and an ordinal, and one that was applied
 * before changes nothing, so the mailbox repeats a task until it has an answer.
 */
export function applyTask(world: QuotaEngineWorld, task: QuotaTask): void {
  world.sql.transaction(() => {
    switch (task.op) {
      case 'settle':
        return settle(world, task);
      case 'release':
        return release(world, task.ref);
      case 'extend':
        return extend(world, task.ref, task.until);
      case 'usage':
        if (once(world, task.ref, -1)) countUsage(world, task.metric, task.amount);
        return undefined;
    }
  });
}

function once({ sql, now }: QuotaEngineWorld, ref: string, n: number): boolean {
  return (
    sql.first('INSERT OR IGNORE INTO applied (ref, n, at) VALUES (?, ?, ?) RETURNING 1 AS fresh', ref, n, now()) !==
    undefined
  );
}

function readHold(sql: Sql, ref: string): Hold | undefined {
  return sql.first<Hold>(
    "SELECT units, identity_id, window, tenant_counted FROM holds WHERE feature = 'sends' AND ref = ?",
    ref,
  );
}

/**
 * Turns a part of the hold into use, keeps a part for recipients that wait for a retry, frees the rest. Without a hold
 * (it expired, or was freed when the send became uncertain) what was accepted still counts.
 */
function settle(world: QuotaEngineWorld, task: Extract<QuotaTask, { op: 'settle' }>): void {
  const fresh = once(world, task.ref, task.n);
  if (!fresh && task.accepted === undefined) return;
  rollPeriod(world.sql, world.now());
  const counts =
    task.accepted === undefined
      ? { sends: task.consume, outbound: task.outbound }
      : countAccepted(world.sql, task.ref, task.n, task.accepted);
  if (!fresh && counts.sends === 0) return;
  world.mark('quota.in_transaction');
  changeAllowance(world.sql, 'sends', { used: counts.sends });
  // The hold moves with the first settlement of its name alone; later ones of a mailbox that was put back know nothing of it.
  if (fresh) settleHold(world, task);
  countUsage(world, 'sends', counts.sends);
  countUsage(world, 'outbound', counts.outbound);
}

function settleHold(world: QuotaEngineWorld, { ref, ...task }: Extract<QuotaTask, { op: 'settle' }>): void {
  const { sql } = world;
  const hold = readHold(sql, ref);
  if (hold === undefined) return;
  const keep = Math.min(task.keep, hold.units);
  if (keep === 0) {
    freeHold(sql, ref, hold);
    return;
  }
  const until = task.until ?? world.now() + world.waits.hold_ttl_ms;
  changeAllowance(sql, 'sends', { held: keep - hold.units });
  sql.run("UPDATE holds SET units = ?, expires_at = ? WHERE feature = 'sends' AND ref = ?", keep, until, ref);
  setDeadlineNoLater(world, 'holds', until);
}

/** Gives back the hold and the day's count. A release that finds nothing also bars a reserve that comes too late. */
function release(world: QuotaEngineWorld, ref: string): void {
  const { sql, mark } = world;
  if (!once(world, ref, 0)) return;
  const hold = readHold(sql, ref);
  mark('quota.in_transaction');
  if (hold === undefined) return;
  freeHold(sql, ref, hold);
  addToCounter(sql, `sends:${hold.identity_id}`, hold.window, -1);
  if (hold.tenant_counted === 1) addToCounter(sql, 'sends', hold.window, -1);
}

function freeHold(sql: Sql, ref: string, hold: Hold): void {
  sql.run("DELETE FROM holds WHERE feature = 'sends' AND ref = ?", ref);
  changeAllowance(sql, 'sends', { held: -hold.units });
}

function extend(world: QuotaEngineWorld, ref: string, until: number): void {
  world.sql.run("UPDATE holds SET expires_at = MAX(expires_at, ?) WHERE feature = 'sends' AND ref = ?", until, ref);
}

function countUsage(world: QuotaEngineWorld, metric: string, amount: number): void {
  if (amount > 0) addToCounter(world.sql, `usage:${metric}`, utcDay(world.now()), amount);
}

/** Frees the hold of a send that has ended; its day's count stays, because the message was accepted. */
export function dropHold(world: QuotaEngineWorld, ref: string): void {
  world.sql.transaction(() => {
    const hold = readHold(world.sql, ref);
    if (hold !== undefined) freeHold(world.sql, ref, hold);
  });
}
