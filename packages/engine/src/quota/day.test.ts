import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, QuotaRig } from './quota.fixture.ts';

/** The tenant's day for the caps: it ends at a local midnight, and no change of zone grants a second one. */

const at = (time: string): number => Date.parse(time);

/** Reserves with a cap at a moment; 'ok 3' or the end of the day when it is reached. */
function reserveAt(rig: QuotaRig, time: string | number, timezone: string, cap: number): string {
  rig.now = typeof time === 'number' ? time : at(time);
  const answer = rig.reserve({ timezone, identity_cap: cap, tenant_cap: null });
  if (answer.kind === 'ok') return `ok ${answer.identity_used}`;
  return answer.kind === 'cap_reached' ? `until ${new Date(answer.resets_at).toISOString()}` : answer.kind;
}

describe('the day', () => {
  test('ends once at local midnight, not at every call after it (K4)', () => {
    const rig = new QuotaRig(at('2026-11-29T09:00:00Z'));
    const results = [
      '2026-11-29T09:00:00Z',
      '2026-11-29T15:00:00Z',
      '2026-11-29T22:58:00Z',
      '2026-11-29T22:59:59Z',
      '2026-11-29T23:00:00Z',
      '2026-11-29T23:00:01Z',
      '2026-11-30T07:00:00Z',
      '2026-11-30T08:59:00Z',
      '2026-11-30T22:59:59Z',
    ].map((time) => reserveAt(rig, time, 'Europe/Berlin', 3));
    expect(results).toEqual([
      'ok 1',
      'ok 2',
      'ok 3',
      'until 2026-11-29T23:00:00.000Z',
      'ok 1',
      'ok 2',
      'ok 3',
      'until 2026-11-30T23:00:00.000Z',
      'until 2026-11-30T23:00:00.000Z',
    ]);
  });

  test.each([
    ['has 23 hours when the clocks go forward', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00.000Z'],
    ['has 25 hours when they go back', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00.000Z'],
    ['has 24 hours else', '2026-06-09T22:00:00Z', '2026-06-10T22:00:00.000Z'],
  ])('%s (K4)', (_what, begin, end) => {
    const rig = new QuotaRig(at(begin));
    expect(reserveAt(rig, begin, 'Europe/Berlin', 1)).toBe('ok 1');
    expect(reserveAt(rig, at(begin) + MINUTE, 'Europe/Berlin', 1)).toBe(`until ${end}`);
    expect(reserveAt(rig, at(end) - 1, 'Europe/Berlin', 1)).toBe(`until ${end}`);
    expect(reserveAt(rig, end, 'Europe/Berlin', 1)).toBe('ok 1');
  });

  test('ends where midnight does not exist (K4)', () => {
    // Cairo skips from 23:59:59 to 01:00.
    const rig = new QuotaRig(at('2026-04-23T12:00:00Z'));
    expect(reserveAt(rig, rig.now, 'Africa/Cairo', 1)).toBe('ok 1');
    expect(reserveAt(rig, '2026-04-23T21:59:59Z', 'Africa/Cairo', 1)).toBe('until 2026-04-23T22:00:00.000Z');
    expect(reserveAt(rig, '2026-04-23T22:00:00Z', 'Africa/Cairo', 1)).toBe('ok 1');
  });

  test('comes after any number of days without a send', () => {
    const rig = new QuotaRig();
    expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
    expect(reserveAt(rig, rig.now + 400 * DAY, 'UTC', 1)).toBe('ok 1');
  });

  test('does not begin again when the clock goes back over midnight (K2)', () => {
    const rig = new QuotaRig(at('2026-11-30T00:00:01Z'));
    expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
    expect(reserveAt(rig, '2026-11-29T23:59:59Z', 'UTC', 1)).toBe('until 2026-12-01T00:00:00.000Z');
    expect(reserveAt(rig, '2026-11-30T00:00:02Z', 'UTC', 1)).toBe('until 2026-12-01T00:00:00.000Z');
  });

  test('of a clock that ran far ahead does not last until then (K1, K2)', () => {
    const rig = new QuotaRig(at('2027-11-30T12:00:00Z'));
    expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
    expect(reserveAt(rig, '2026-11-30T12:00:00Z', 'UTC', 1)).toBe('ok 1');
    expect(reserveAt(rig, '2026-11-30T12:00:01Z', 'UTC', 1)).toBe('until 2026-12-01T00:00:00.000Z');
  });

  test("keeps yesterday's counts for what is given back late, and no older ones for ever", () => {
    const rig = new QuotaRig(at('2026-11-29T23:59:00Z'));
    rig.reserve({ ref: 'late' });
    rig.now += 2 * MINUTE;
    rig.reserve();
    rig.release('late');
    expect(rig.storage.sql.all("SELECT window, value FROM counters WHERE metric = 'sends' ORDER BY window")).toEqual([
      { window: '2026-11-29', value: 0 },
      { window: '2026-11-30', value: 1 },
    ]);
    rig.now += 10 * DAY;
    rig.reserve();
    expect(rig.storage.sql.all("SELECT window FROM counters WHERE metric = 'sends'")).toHaveLength(1);
  });
});

describe('a new time zone (R13)', () => {
  test('does not end the running day: it goes on to the midnight of the new zone after its old end', () => {
    const rig = new QuotaRig(at('2026-11-30T09:00:00Z'));
    expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
    // In Auckland a new day has begun an hour later; the tenant's has not.
    expect(reserveAt(rig, '2026-11-30T11:30:00Z', 'Pacific/Auckland', 1)).toBe('until 2026-12-01T11:00:00.000Z');
    expect(reserveAt(rig, '2026-12-01T11:00:00Z', 'Pacific/Auckland', 1)).toBe('ok 1');
    expect(reserveAt(rig, '2026-12-01T12:00:00Z', 'Pacific/Auckland', 1)).toBe('until 2026-12-02T11:00:00.000Z');
  });

  test('to the west reaches the same date again, and counts from nothing all the same', () => {
    const rig = new QuotaRig(at('2026-11-30T09:00:00Z'));
    expect(reserveAt(rig, rig.now, 'Pacific/Kiritimati', 2)).toBe('ok 1');
    expect(reserveAt(rig, '2026-11-30T09:30:00Z', 'Pacific/Pago_Pago', 2)).toBe('ok 2');
    expect(reserveAt(rig, '2026-11-30T10:30:00Z', 'Pacific/Pago_Pago', 2)).toBe('until 2026-11-30T11:00:00.000Z');
    expect(reserveAt(rig, '2026-11-30T11:00:00Z', 'Pacific/Pago_Pago', 2)).toBe('ok 1');
  });

  test('changed back and forth in one day puts its end off, and never brings a second day', () => {
    const rig = new QuotaRig(at('2026-11-30T01:00:00Z'));
    const zones = ['UTC', 'Asia/Tokyo'];
    expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
    for (let i = 1; i <= 40; i++) {
      expect(reserveAt(rig, rig.now + MINUTE, zones[i % 2] ?? '', 1)).toMatch(/^until /);
    }
    // Back in the zone where it began, the day ends where it would have ended.
    expect(reserveAt(rig, rig.now + MINUTE, 'UTC', 1)).toBe('until 2026-12-01T00:00:00.000Z');
  });

  test('changed between midnight and the first send is no shorter day', () => {
    const rig = new QuotaRig(at('2026-11-30T23:59:00Z'));
    expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
    // One minute to midnight in New York, five hours after the tenant's own midnight.
    expect(reserveAt(rig, '2026-12-01T04:59:00Z', 'America/New_York', 1)).toBe('ok 1');
    expect(reserveAt(rig, '2026-12-01T05:01:00Z', 'America/New_York', 1)).toBe('until 2026-12-02T05:00:00.000Z');
  });

  test('never makes days shorter than the calendar does: three in a row span more than 23 hours', () => {
    const zones = [
      'UTC',
      'Europe/Berlin',
      'Pacific/Kiritimati',
      'Pacific/Pago_Pago',
      'America/New_York',
      'Asia/Kolkata',
    ];
    const step = fc.tuple(fc.integer({ min: 0, max: 14 * 60 }), fc.constantFrom(...zones));
    fc.assert(
      fc.property(
        fc.constantFrom('2026-11-28T00:00:00Z', '2026-03-27T12:00:00Z', '2026-10-23T20:00:00Z'),
        fc.array(step, { maxLength: 40 }),
        (start, steps) => {
          const rig = new QuotaRig(at(start));
          const granted: number[] = [];
          for (const [minutes, zone] of steps) {
            if (reserveAt(rig, rig.now + minutes * MINUTE, zone, 1).startsWith('ok')) granted.push(rig.now);
          }
          for (let i = 2; i < granted.length; i++) {
            expect((granted[i] ?? 0) - (granted[i - 2] ?? 0)).toBeGreaterThan(23 * HOUR - 1);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  test('that stays brings a new day every day', () => {
    fc.assert(
      fc.property(fc.constantFrom('Asia/Tokyo', 'America/New_York', 'Pacific/Kiritimati'), (zone) => {
        const rig = new QuotaRig(at('2026-11-28T05:00:00Z'));
        expect(reserveAt(rig, rig.now, 'UTC', 1)).toBe('ok 1');
        let granted = 0;
        for (let hour = 0; hour < 10 * 24; hour++) {
          if (reserveAt(rig, rig.now + HOUR, zone, 1).startsWith('ok')) granted++;
        }
        expect(granted).toBeGreaterThanOrEqual(9);
      }),
    );
  });
});
