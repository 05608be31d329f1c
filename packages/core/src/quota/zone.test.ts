import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTimeZone, localDay, nextLocalMidnight } from './zone.ts';

const HOUR = 3_600_000;
const ZONES = Intl.supportedValuesOf('timeZone');

function at(text: string): number {
  return Date.parse(text);
}

/** Hours of the local day that holds a time: from the midnight before to the next one. */
function dayLength(zone: string, noon: string): number {
  const end = nextLocalMidnight(zone, at(noon));
  const today = localDay(zone, at(noon));
  let start = at(noon);
  while (localDay(zone, start - 60_000) === today) start -= 60_000;
  return (end - start) / HOUR;
}

describe('the local day', () => {
  it.each([
    ['UTC', '2026-11-30T23:59:59.999Z', '2026-11-30'],
    ['UTC', '2026-12-01T00:00:00Z', '2026-12-01'],
    ['Europe/Berlin', '2026-11-30T22:59:59.999Z', '2026-11-30'],
    ['Europe/Berlin', '2026-11-30T23:00:00Z', '2026-12-01'],
    ['Pacific/Kiritimati', '2026-11-30T10:00:00Z', '2026-12-01'],
    ['Pacific/Pago_Pago', '2026-12-01T10:59:59Z', '2026-11-30'],
    ['Asia/Kathmandu', '2026-11-30T18:14:59Z', '2026-11-30'],
    ['Asia/Kathmandu', '2026-11-30T18:15:00Z', '2026-12-01'],
    ['America/St_Johns', '2026-02-28T03:30:00Z', '2026-02-28'],
    ['Asia/Tehran', '2028-02-28T20:30:00Z', '2028-02-29'],
  ])('in %s at %s is %s', (zone, time, day) => {
    expect(localDay(zone, at(time))).toBe(day);
  });
});

describe('the next local midnight', () => {
  it.each([
    ['UTC', '2026-11-30T12:00:00Z', '2026-12-01T00:00:00Z'],
    ['UTC', '2026-11-30T00:00:00Z', '2026-12-01T00:00:00Z'],
    ['UTC', '2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00Z'],
    ['Europe/Berlin', '2026-11-29T22:59:59Z', '2026-11-29T23:00:00Z'],
    ['Europe/Berlin', '2026-11-29T23:00:00Z', '2026-11-30T23:00:00Z'],
    ['Asia/Kathmandu', '2026-11-30T12:00:00Z', '2026-11-30T18:15:00Z'],
    ['Australia/Lord_Howe', '2026-06-01T00:00:00Z', '2026-06-01T13:30:00Z'],
  ])('in %s after %s', (zone, time, next) => {
    expect(nextLocalMidnight(zone, at(time))).toBe(at(next));
  });

  it.each([
    ['a day of 23 hours when clocks go forward', 'Europe/Berlin', '2026-03-29T10:00:00Z', 23],
    ['a day of 25 hours when clocks go back', 'Europe/Berlin', '2026-10-25T10:00:00Z', 25],
    ['the same in America, where the hour is another', 'America/New_York', '2026-03-08T16:00:00Z', 23],
    ['and back', 'America/New_York', '2026-11-01T16:00:00Z', 25],
    ['a change of half an hour', 'Australia/Lord_Howe', '2026-10-04T02:00:00Z', 23.5],
    ['an ordinary day', 'Europe/Berlin', '2026-11-30T10:00:00Z', 24],
  ])('ends %s', (_what, zone, noon, hours) => {
    expect(dayLength(zone, noon)).toBe(hours);
  });

  it.each([
    // Clocks go from 00:00 to 01:00, so the day begins at one.
    ['Africa/Cairo', '2026-04-23T12:00:00Z', '2026-04-23T22:00:00Z', '2026-04-24'],
    ['Asia/Beirut', '2026-03-28T12:00:00Z', '2026-03-28T22:00:00Z', '2026-03-29'],
    ['America/Sao_Paulo', '2018-11-03T12:00:00Z', '2018-11-04T03:00:00Z', '2018-11-04'],
  ])('in %s is the first moment of a day whose midnight does not exist', (zone, time, next, day) => {
    expect(nextLocalMidnight(zone, at(time))).toBe(at(next));
    expect(localDay(zone, at(next))).toBe(day);
  });

  it('does not come twice when clocks go back across midnight', () => {
    // 2018-02-17 24:00 became 23:00 again.
    expect(nextLocalMidnight('America/Sao_Paulo', at('2018-02-17T12:00:00Z'))).toBe(at('2018-02-18T03:00:00Z'));
  });

  it('steps over a date that a zone left out', () => {
    const next = nextLocalMidnight('Pacific/Apia', at('2011-12-29T20:00:00Z'));
    expect(next).toBe(at('2011-12-30T10:00:00Z'));
    expect(localDay('Pacific/Apia', next - 1)).toBe('2011-12-29');
    expect(localDay('Pacific/Apia', next)).toBe('2011-12-31');
  });

  it('is in every zone the moment at which the date changes, and the first one', () => {
    const time = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2040, 0) });
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), time, (zone, now) => {
        const next = nextLocalMidnight(zone, now);
        const today = localDay(zone, now);
        expect(next).toBeGreaterThan(now);
        expect(next - now).toBeLessThanOrEqual(25 * HOUR);
        expect(localDay(zone, next - 1)).toBe(today);
        expect(localDay(zone, next)).not.toBe(today);
        for (let i = 1; i < 20; i++) expect(localDay(zone, now + Math.floor(((next - 1 - now) * i) / 20))).toBe(today);
      }),
      { numRuns: 300 },
    );
  });

  it('from one to the next walks through the calendar, a day at a time', () => {
    for (const zone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Africa/Cairo', 'Australia/Lord_Howe']) {
      let now = at('2026-01-01T12:00:00Z');
      const days: string[] = [];
      for (let i = 0; i < 365; i++) {
        now = nextLocalMidnight(zone, now);
        days.push(localDay(zone, now));
      }
      const calendar = Array.from({ length: 365 }, (_, i) =>
        new Date(Date.UTC(2026, 0, 2 + i)).toISOString().slice(0, 10),
      );
      expect(days).toEqual(calendar);
    }
  });
});

describe('a day of sends in Berlin', () => {
  it('is one counter from midnight to midnight, and it resets once', () => {
    const times = [
      '2026-11-29T09:00:00Z',
      '2026-11-29T15:00:00Z',
      '2026-11-29T22:58:00Z',
      '2026-11-29T22:59:59Z',
      '2026-11-29T23:00:00Z',
      '2026-11-29T23:00:01Z',
      '2026-11-30T07:00:00Z',
      '2026-11-30T08:59:00Z',
      '2026-11-30T22:59:59Z',
    ].map(at);
    expect(times.map((time) => localDay('Europe/Berlin', time))).toEqual([
      ...Array.from({ length: 4 }, () => '2026-11-29'),
      ...Array.from({ length: 5 }, () => '2026-11-30'),
    ]);
    const resets = times.map((time) => new Date(nextLocalMidnight('Europe/Berlin', time)).toISOString());
    expect(new Set(resets.slice(0, 4))).toEqual(new Set(['2026-11-29T23:00:00.000Z']));
    expect(new Set(resets.slice(4))).toEqual(new Set(['2026-11-30T23:00:00.000Z']));
  });
});

describe('the name of a zone', () => {
  it('is one the runtime knows', () => {
    for (const zone of [...ZONES, 'UTC', 'Etc/GMT+5', 'America/Argentina/Buenos_Aires']) {
      expect({ zone, known: isTimeZone(zone) }).toEqual({ zone, known: true });
    }
  });

  it.each([
    '',
    'Mars/Olympus',
    'Europe/Berlin ',
    'Europe/Berlin\n',
    'Europe',
    '+02:00',
    '+0200',
    '-05',
    '../etc/passwd',
    'x'.repeat(65),
    'Europe/Bérlin',
  ])('is not %j', (zone) => {
    expect(isTimeZone(zone)).toBe(false);
  });
});
