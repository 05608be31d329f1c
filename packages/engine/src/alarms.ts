import { deleteMeta, metaWithPrefix, readMeta, writeMeta } from './meta.ts';
import type { AlarmClock } from './ports.ts';
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

/** No wait is longer: clean-ups and refused daily limits come after a day at most. */
export const LONGEST_WAIT_MS = 2 * 86_400_000;

/** Whether nothing ever waits for so late a moment, so that it was set by a clock that ran ahead. */
export function isFarAhead(at: number, now: number): boolean {
  return at > now + LONGEST_WAIT_MS;
}

/** Purposes whose deadline nothing can be waiting for. */
export function strayDeadlines(sql: Sql, now: number): string[] {
  return metaWithPrefix(sql, 'alarm:')
    .filter(({ v }) => isFarAhead(Number(v), now))
    .map(({ k }) => k.slice('alarm:'.length));
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
 * @returns the earliest deadline, Unix ms
 */
export function rearm(world: AlarmWorld): number | null {
  const earliest = earliestDeadline(world.sql);
  const lost = earliest !== null && earliest < world.now() - OVERDUE_MS;
  if (world.alarms.armed === earliest && !lost) return earliest;
  world.alarm.set(lost ? world.now() : earliest);
  world.alarms.armed = earliest;
  return earliest;
}
