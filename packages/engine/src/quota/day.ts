import { localDay, nextLocalMidnight } from '@pmail/core/quota/zone.ts';
import { readMeta, writeMeta } from '../meta.ts';
import type { Sql } from '../sql.ts';

/**
 * The tenant's current day for the caps. It ends at a local midnight, found on the calendar and not by adding 24
 * hours. A new time zone never cuts a day short: the day that runs when the change is first seen goes on to the new
 * zone's first midnight after its own end, so that no change of zone grants a second day's cap.
 */
export interface QuotaDay {
  zone: string;
  /** Key of the counters, the local date. */
  window: string;
  ends_at: number;
  /** Where it would end without any change of zone. Every change counts from here, so that changes do not add up. */
  own_end: number;
}

/** A day that would end later than this was written by a clock that ran ahead; it is not kept. */
const LONGEST_DAY_MS = 3 * 86_400_000;

export function currentDay(sql: Sql, zone: string, now: number): QuotaDay {
  const stored = readMeta(sql, 'day');
  const last = stored === undefined ? null : (JSON.parse(stored) as QuotaDay);
  const runs = last !== null && now < last.ends_at && last.ends_at - now <= LONGEST_DAY_MS;
  if (runs && last.zone === zone) return last;
  // Nobody says when the zone was changed. Until the change is seen the old one counts, also for days without a send.
  const day = runs ? last : beginDay(last, last?.zone ?? zone, now);
  if (day.zone !== zone) {
    day.zone = zone;
    day.ends_at = nextLocalMidnight(zone, Math.max(day.own_end - 1, now));
  }
  writeMeta(sql, 'day', JSON.stringify(day));
  if (!runs) forgetOldWindows(sql, day.window);
  return day;
}

function beginDay(last: QuotaDay | null, zone: string, now: number): QuotaDay {
  const end = nextLocalMidnight(zone, now);
  return { zone, window: unusedWindow(localDay(zone, now), last?.window), ends_at: end, own_end: end };
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
