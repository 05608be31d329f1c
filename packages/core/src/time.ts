/** RFC 3339 UTC with milliseconds, the only form in which the API writes a time. `ms` is Unix milliseconds. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString();
}

export function rfc3339OrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : rfc3339(ms);
}

/**
 * Unix ms of an RFC 3339 date-time with any offset, else `undefined`. Checks the calendar, which `Date.parse` does not:
 * 30 February is refused, not moved to March.
 */
export function parseRfc3339(text: string): number | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', zone = 'Z'] = match;
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  const back = new Date(0);
  const date = back.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (back.getUTCMonth() !== Number(month) - 1 || back.getUTCDate() !== Number(day)) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  let offset = 0;
  if (zone.toUpperCase() !== 'Z') {
    const hours = Number(zone.slice(1, 3));
    const minutes = Number(zone.slice(4, 6));
    if (hours > 23 || minutes > 59) return undefined;
    offset = (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
  }
  const time = ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
  return date + time + Math.floor(Number(`0${fraction}`) * 1000) - offset;
}

/** UTC calendar day of a Unix ms time, `YYYY-MM-DD`. */
export function utcDay(ms: number): string {
  return rfc3339(ms).slice(0, 10);
}
