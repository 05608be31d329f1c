/**
 * Calendar days in IANA time zones, for the daily caps. A local day is the span in which the local date stays the
 * same; its end is found by search over the date itself, so a day of 23 or 25 hours, a midnight that does not exist
 * and a date that a zone skipped all come out right.
 */

const FORMATS = new Map<string, Intl.DateTimeFormat>();

function formatFor(zone: string): Intl.DateTimeFormat {
  let format = FORMATS.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' });
    FORMATS.set(zone, format);
  }
  return format;
}

/** Whether the runtime knows this IANA zone name. A bare offset such as `+0200` is no name. */
export function isTimeZone(zone: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(zone)) return false;
  try {
    formatFor(zone);
    return true;
  } catch {
    return false;
  }
}

/** Local calendar date, `YYYY-MM-DD`, at a Unix ms time. */
export function localDay(zone: string, at: number): string {
  const parts = formatFor(zone).formatToParts(at);
  const part = (type: string): string => parts.find((entry) => entry.type === type)?.value ?? '';
  return `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
}

const MINUTE = 60_000;

/** Unix ms at which the local date next changes after `at`: the next local midnight, to the minute. */
export function nextLocalMidnight(zone: string, at: number): number {
  const today = localDay(zone, at);
  let low = Math.floor(at / MINUTE);
  // No zone has kept one date for more than 49 hours.
  let high = low + 49 * 60;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (localDay(zone, middle * MINUTE) === today) low = middle;
    else high = middle;
  }
  return high * MINUTE;
}
