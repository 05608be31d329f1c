import { rfc5322Date } from '@pmail/core/compose/bodies.ts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseMailDate } from './mail-date.ts';

it.each([
  ['Mon, 30 Nov 2026 08:00:00 +0000', '2026-11-30T08:00:00Z'],
  ['30 Nov 2026 08:00 -0330', '2026-11-30T11:30:00Z'],
  ['Mon, 30 Nov 2026 08:00:00 +0200 (CEST (summer))', '2026-11-30T06:00:00Z'],
  ['Mon , 30  Nov  2026 8:00:00 EST', '2026-11-30T13:00:00Z'],
  ['Mon, 30 Nov 2026 08:00:00 GMT', '2026-11-30T08:00:00Z'],
  ['Mon, 30 Nov 2026 08:00:00', '2026-11-30T08:00:00Z'],
  ['30-Nov-26 08:00:00 +0000', '2026-11-30T08:00:00Z'],
  ['30 Nov 99 08:00:00 +0000', '1999-11-30T08:00:00Z'],
  ['30 Nov 126 08:00:00 +0000', '2026-11-30T08:00:00Z'],
  ['Mon, 30 November 2026 08:00:00 +00:00', '2026-11-30T08:00:00Z'],
  ['Mon,30 Nov 2026 08:00:00 +0000', '2026-11-30T08:00:00Z'],
  [`Mon, 30 Nov 2026 08:00:00 +0100 (${'long '.repeat(1_000)})`, '2026-11-30T07:00:00Z'],
  ['2026-11-30T08:00:00+01:00', '2026-11-30T07:00:00Z'],
])('%s', (value, expected) => {
  expect(parseMailDate(value)).toBe(Date.parse(expected));
});

it.each([
  '',
  'yesterday',
  '30 Foo 2026 08:00:00 +0000',
  '99 Nov 2026 08:00:00 +0000',
  '30 Nov 2026 25:00:00 +0000',
  '2026-11-30T08:00:00',
  '2026-11-30',
])('is no date: %j', (value) => {
  expect(parseMailDate(value)).toBeNull();
});

it('reads what core writes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e9 }), (seconds) => {
      expect(parseMailDate(rfc5322Date(seconds * 1000))).toBe(seconds * 1000);
    }),
  );
});
