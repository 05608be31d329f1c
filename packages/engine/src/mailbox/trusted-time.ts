import { readMeta, writeMeta } from '../meta.ts';
import type { Sql } from '../sql.ts';

/**
 * By which time something has expired. A clock that jumps a year ahead and comes back must not have made old keys new
 * or deleted what keeps them, so no more time passes between two daily clean-ups than they may be apart: the clock is
 * believed up to a few days after the clean-up before the last one, which in an ordinary life is always ahead of now.
 */

const BEFORE = 'cleaned_before';
const LAST = 'cleaned_last';
/** Two periods of the clean-up, and a day for alarms that come late. */
const BELIEVED_MS = 3 * 86_400_000;

/** `now`, or less when the clock has run away. */
export function expiryTime(sql: Sql, now: number): number {
  const before = readMeta(sql, BEFORE);
  return before === undefined ? now : Math.min(now, Number(before) + BELIEVED_MS);
}

/** Clean-ups that are closer together are one that was tried again. */
const APART_MS = 12 * 3_600_000;

/** Notes a clean-up, and the making of the mailbox as one. Call inside the transaction of what it did. */
export function noteCleanUp(sql: Sql, now: number): void {
  const last = Number(readMeta(sql, LAST) ?? Number.NaN);
  if (now >= last && now - last < APART_MS) return;
  writeMeta(sql, BEFORE, String(Number.isNaN(last) ? now : Math.min(last, now)));
  writeMeta(sql, LAST, String(now));
}
