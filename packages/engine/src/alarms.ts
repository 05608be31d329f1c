import { LIMITS } from '@pmail/core/limits.ts';
import { deleteMeta, metaWithPrefix, readMeta, writeMeta } from './meta.ts';
import type { AlarmClock, Log } from './ports.ts';
import type { Sql } from './sql.ts';

/**
 * Many deadlines on the platform's one alarm: each purpose has its row `alarm:{purpose}` with its Unix ms time, and
 * the platform alarm stands at the earliest. The rows are the truth; the platform alarm can be lost, so every entry
 * to an object puts it back from the rows.
 */

/** Beyond this an alarm that should have fired counts as lost. */
const OVERDUE_MS = 60_000;

export interface AlarmMemory {
  /** Where the platform alarm stands as far as this instance knows; undefined before it has looked. */
  armed: number | null | undefined;
}

/**
 * The storage of an instance that remembers where its alarm stands. A transaction that fails takes the alarm back with
 * it, so the instance no longer knows.
 */
export function forgettingSql(sql: Sql, alarms: AlarmMemory): Sql {
  return {
    all: (query, ...bindings) => sql.all(query, ...bindings),
    first: (query, ...bindings) => sql.first(query, ...bindings),
    run: (query, ...bindings) => sql.run(query, ...bindings),
    transaction: (body) => {
      try {
        return sql.transaction(body);
      } catch (error) {
        alarms.armed = undefined;
        throw error;
      }
    },
  };
}

interface AlarmWorld {
  sql: Sql;
  alarm: AlarmClock;
  now: () => number;
  alarms: AlarmMemory;
}

/** Sets a deadline for a purpose, or takes it away with null. Call inside the transaction that creates the need. */
export function setDeadline(world: AlarmWorld, purpose: string, at: number | null): void {
  if (at === null) deleteMeta(world.sql, `alarm:${purpose}`);
  else writeMeta(world.sql, `alarm:${purpose}`, String(at));
  arm(world);
}

/** Sets a deadline unless an earlier one stands. */
export function setDeadlineNoLater(world: AlarmWorld, purpose: string, at: number): void {
  const standing = deadline(world.sql, purpose);
  if (standing === null || standing > at) setDeadline(world, purpose, at);
  else arm(world);
}

export function deadline(sql: Sql, purpose: string): number | null {
  const value = readMeta(sql, `alarm:${purpose}`);
  return value === undefined ? null : Number(value);
}

export function earliestDeadline(sql: Sql): number | null {
  const times = metaWithPrefix(sql, 'alarm:').map(({ v }) => Number(v));
  return times.length === 0 ? null : Math.min(...times);
}

/** Purposes due at `now`, the longest overdue first. */
export function dueDeadlines(sql: Sql, now: number): { purpose: string; at: number }[] {
  return metaWithPrefix(sql, 'alarm:')
    .map(({ k, v }) => ({ purpose: k.slice('alarm:'.length), at: Number(v) }))
    .filter(({ at }) => at <= now)
    .sort((a, b) => a.at - b.at);
}

/** Whether nothing ever waits for so late a moment, so that it was set by a clock that ran ahead. */
export function isFarAhead(at: number, now: number): boolean {
  return at > now + LIMITS.wait_ms_max;
}

/**
 * What was put off while the clock ran far ahead would wait until that time has really come. Deadlines that nothing can be
 * waiting for are due now, after the object has done the same with the times that they were made of.
 *
 * @param rows runs inside the transaction
 */
export function pullBack(world: AlarmWorld & { log: Log }, rows: (now: number, farthest: number) => void): void {
  const { sql } = world;
  const now = world.now();
  const ahead = metaWithPrefix(sql, 'alarm:').filter(({ v }) => isFarAhead(Number(v), now));
  if (ahead.length === 0) return;
  sql.transaction(() => {
    rows(now, now + LIMITS.wait_ms_max);
    for (const { k } of ahead) setDeadline(world, k.slice('alarm:'.length), now);
  });
  world.log('warn', 'clock_went_back', { deadlines: ahead.length });
}

/** Puts the platform alarm where the rows say, when this instance does not know it to stand there. */
export function arm(world: AlarmWorld): void {
  const earliest = earliestDeadline(world.sql);
  if (earliest === world.alarms.armed) return;
  world.alarm.set(earliest);
  world.alarms.armed = earliest;
}

/**
 * For every entry to the object: a fresh instance arms the alarm from the rows, and one whose deadline has long passed
 * takes the alarm for lost and sets it again.
 *
 * @returns whether even the earliest deadline is one to be pulled back
 */
export function rearm(world: AlarmWorld): boolean {
  const now = world.now();
  const earliest = earliestDeadline(world.sql);
  const lost = earliest !== null && earliest < now - OVERDUE_MS;
  if (world.alarms.armed !== earliest || lost) {
    world.alarm.set(lost ? now : earliest);
    world.alarms.armed = earliest;
  }
  return earliest !== null && isFarAhead(earliest, now);
}
