import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRfc3339, rfc3339, rfc3339OrNull, utcDay } from './time.ts';

describe('writing a time', () => {
  it('is RFC 3339 in UTC, always with milliseconds', () => {
    expect(rfc3339(Date.UTC(2026, 9, 9, 10, 12, 3, 412))).toBe('2026-10-09T10:12:03.412Z');
    expect(rfc3339(0)).toBe('1970-01-01T00:00:00.000Z');
  });

  it('leaves a missing one empty', () => {
    expect(rfc3339OrNull(null)).toBeNull();
    expect(rfc3339OrNull(undefined)).toBeNull();
    expect(rfc3339OrNull(0)).toBe('1970-01-01T00:00:00.000Z');
  });

  it('gives the UTC day', () => {
    expect(utcDay(Date.UTC(2026, 11, 31, 23, 59, 59, 999))).toBe('2026-12-31');
    expect(utcDay(Date.UTC(2027, 0, 1))).toBe('2027-01-01');
  });
});

describe('reading a time', () => {
  it.each([
    ['2026-10-09T10:12:03.412Z', Date.UTC(2026, 9, 9, 10, 12, 3, 412)],
    ['2026-10-09T10:12:03Z', Date.UTC(2026, 9, 9, 10, 12, 3)],
    ['2026-10-09t10:12:03z', Date.UTC(2026, 9, 9, 10, 12, 3)],
    ['2026-10-09T12:12:03+02:00', Date.UTC(2026, 9, 9, 10, 12, 3)],
    ['2026-10-09T00:12:03-10:30', Date.UTC(2026, 9, 9, 10, 42, 3)],
    ['2026-01-01T00:30:00+01:00', Date.UTC(2025, 11, 31, 23, 30)],
    ['2026-10-09T10:12:03+23:59', Date.UTC(2026, 9, 8, 10, 13, 3)],
    ['2026-10-09T10:12:03-00:00', Date.UTC(2026, 9, 9, 10, 12, 3)],
    ['2026-10-09T10:12:03.1Z', Date.UTC(2026, 9, 9, 10, 12, 3, 100)],
    ['2026-10-09T10:12:03.999999999Z', Date.UTC(2026, 9, 9, 10, 12, 3, 999)],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29)],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['1969-12-31T23:59:59Z', -1_000],
    ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ])('%s', (text, ms) => {
    expect(parseRfc3339(text)).toBe(ms);
  });

  it('takes the first century for what it is', () => {
    const ms = parseRfc3339('0050-03-01T00:00:00Z');
    expect(ms).toBeDefined();
    expect(rfc3339(ms ?? 0)).toBe('0050-03-01T00:00:00.000Z');
    expect(rfc3339(parseRfc3339('0000-02-29T00:00:00Z') ?? 0)).toBe('0000-02-29T00:00:00.000Z');
  });

  it.each([
    '2026-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-10-09T24:00:00Z',
    '2026-10-09T10:60:00Z',
    '2026-10-09T10:00:61Z',
    '2026-10-09T10:00:00+24:00',
    '2026-10-09T10:00:00+01:60',
  ])('refuses a day or hour that does not exist: %s', (text) => {
    expect(parseRfc3339(text)).toBeUndefined();
  });

  it.each([
    '',
    '2026-10-09',
    '2026-10-09T10:12:03',
    '2026-10-09 10:12:03Z',
    '2026-10-09T10:12Z',
    '2026-10-09T10:12:03.Z',
    '2026-10-09T10:12:03,5Z',
    '2026-10-09T10:12:03+0200',
    '2026-10-09T10:12:03+02',
    '26-10-09T10:12:03Z',
    '+002026-10-09T10:12:03Z',
    '2026-10-9T10:12:03Z',
    ' 2026-10-09T10:12:03Z',
    '2026-10-09T10:12:03Z\n',
    '٢٠٢٦-10-09T10:12:03Z',
    'Fri, 09 Oct 2026 10:12:03 +0000',
    '1760004723',
  ])('refuses another form: %j', (text) => {
    expect(parseRfc3339(text)).toBeUndefined();
  });

  it('gives back every time that was written', () => {
    const ms = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2100, 0) });
    fc.assert(
      fc.property(ms, (at) => {
        expect(parseRfc3339(rfc3339(at))).toBe(at);
      }),
    );
    for (let part = 0; part < 1_000; part++) {
      expect(parseRfc3339(rfc3339(Date.UTC(2026, 0) + part))).toBe(Date.UTC(2026, 0) + part);
    }
  });

  it('takes an offset off, so that one moment has one value', () => {
    const offset = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 });
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2100, 0) }), offset, (at, minutes) => {
        const two = (n: number): string => String(n).padStart(2, '0');
        const size = Math.abs(minutes);
        const zone = `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
        expect(parseRfc3339(rfc3339(at + minutes * 60_000).replace('Z', zone))).toBe(at);
      }),
    );
  });

  it('never throws and never gives NaN', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789-+:.TZ'.split('')), maxLength: 30 }), (text) => {
        expect(parseRfc3339(text)).not.toBeNaN();
      }),
    );
  });
});
