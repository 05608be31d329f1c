import { localDay, nextLocalMidnight } from '@pmail/core/quota/zone.ts';
import { readMeta, writeMeta } from '../meta.ts';
import type { Sql } from '../sql.ts';

/**
 * The tenant's current day for the caps. It ends at a local midnight, found on the calendar and not by adding 24
 * hours. A new time zone never cuts the running day short: the day goes on to the new zone's first midnight after its
 * old end, so that no change of zone grants a second day's cap.
 */
export interface QuotaDay {
  zone: string;
  /** Key of the counters, the local date. */
  window: string;
  ends_at: number;
}

/** A day that would end later than this was written by a clock that ran ahead; it is not kept. */
const LONGEST_DAY_MS = 3 * 86_400_000;

export function currentDay(sql: Sql, zone: string, now: number): QuotaDay {
  const stored = readMeta(sql, 'day');
  const last = stored === undefined ? null : (JSON.parse(stored) as QuotaDay);
  if (last !== null && now < last.ends_at && last.ends_at - now <= LONGEST_DAY_MS) {
    if (last.zone === zone) return last;
    const day = { zone, window: last.window, ends_at: nextLocalMidnight(zone, last.ends_at - 1) };
    writeMeta(sql, 'day', JSON.stringify(day));
    return day;
  }
  const date = localDay(zone, now);
  const day = { zone, window: unusedWindow(date, last?.window), ends_at: nextLocalMidnight(zone, now) };
  writeMeta(sql, 'day', JSON.stringify(day));
  forgetOldWindows(sql, day.window);
  return day;
}

/** Going west a zone change can reach the same date again; its counters must start at zero all the same. */
function unusedWindow(date: string, last: string | undefined): string {
  if (last === undefined || !last.startsWith(date)) return date;
  return `${date}#${Number(last.split('#')[1] ?? 1) + 1}`;
}

/** Yesterday's counters stay for a while, for holds that are given back late. */
function forgetOldWindows(sql: Sql, window: string): void {
  const cutoff = new Date(Date.parse(`${window.slice(0, 10)}T00:00:00Z`) - 3 * 86_400_000).toISOString().slice(0, 10);
  sql.run("DELETE FROM counters WHERE (metric LIKE 'sends%' OR metric LIKE 'warned:%') AND window < ?", cutoff);
}
