const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Named zones of RFC 5322 section 4.3 in minutes; unknown names and single letters mean UTC there. */
const ZONES: Record<string, number> = {
  EST: -300,
  EDT: -240,
  CST: -360,
  CDT: -300,
  MST: -420,
  MDT: -360,
  PST: -480,
  PDT: -420,
};

/** A date with a long comment behind it; the rest is not looked at. */
const DATE_CHARS_MAX = 256;

// White space around a comma must not be two repeats beside each other, or a run of blanks without the comma is parted in
// every possible way.
const DATE =
  /^(?:[a-z]+(?:\s*,\s*|\s+))?(\d{1,2})[\s-]+([a-z]{3})[a-z]*[\s-]+(\d{2,4})\s+(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?(?:\.\d+)?\s*(?:([+-])(\d{2}):?(\d{2})|([a-z]+))?/i;

/**
 * Unix ms of a Date header (RFC 5322 section 3.3 with the obsolete forms of 4.3), or `null`. `Date.parse` is not used
 * for it: it reads a time without a zone in the zone of the machine.
 */
export function parseMailDate(value: string): number | null {
  const text = value.trim().slice(0, DATE_CHARS_MAX);
  const match = DATE.exec(text.replace(/\([^()]*\)/g, ' ').trim());
  if (match === null) return isoDate(text);
  const [, day, monthName = '', yearText = '', hour, minute, second = '0', sign, zoneHours, zoneMinutes, name] = match;
  const month = MONTHS.indexOf(monthName.toLowerCase());
  let year = Number(yearText);
  if (yearText.length === 2) year += year < 50 ? 2000 : 1900;
  else if (yearText.length === 3) year += 1900;
  const valid =
    month >= 0 &&
    Number(day) >= 1 &&
    Number(day) <= 31 &&
    Number(hour) <= 23 &&
    Number(minute) <= 59 &&
    Number(second) <= 60;
  if (!valid) return null;
  const named = ZONES[name?.toUpperCase() ?? ''] ?? 0;
  const offset = sign === undefined ? named : (sign === '-' ? -1 : 1) * (Number(zoneHours) * 60 + Number(zoneMinutes));
  const time = Date.UTC(2000, month, Number(day), Number(hour), Number(minute), Number(second));
  // Date.UTC takes years below 100 for 19xx, so the year is set apart.
  const ms = new Date(time).setUTCFullYear(year, month, Number(day)) - offset * 60_000;
  return Number.isNaN(ms) ? null : ms;
}

/** Some programs write an ISO time; only one with its zone means a definite moment. */
function isoDate(value: string): number | null {
  if (!/^\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?\s*(?:Z|[+-]\d\d:?\d\d)\s*$/i.test(value)) return null;
  const ms = Date.parse(value.trim().replace(' ', 'T').replace(/\s+/g, ''));
  return Number.isNaN(ms) ? null : ms;
}
