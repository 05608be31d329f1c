import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, DESK, HOUR, MINUTE, NOW, QuotaRig, SECOND } from './quota.fixture.ts';

/** A hold past its time is the only trace of a send whose process died: its mailbox is asked (S10). */

const YEAR = 365 * DAY;

let rig: QuotaRig;

beforeEach(() => {
  rig = new QuotaRig();
  rig.reserve({ ref: 'm1', units: 3 });
});

const counts = (): number[] => [rig.counted('sends'), rig.counted(`sends:${DESK}`)];

describe('a hold past its time, of a send that', () => {
  test('never came to be: hold and count go back, and a late reserve finds it so (S10)', async () => {
    await rig.advance(10 * MINUTE);
    expect(rig.asked).toEqual(['m1']);
    expect(rig.books).toEqual({ used: 0, held: 0 });
    expect(counts()).toEqual([0, 0]);
    expect(rig.reserve({ ref: 'm1' })).toEqual({ kind: 'released' });
  });

  test('was canceled: hold and count go back, and the release that comes late changes nothing (S12, S14)', async () => {
    rig.states.set('m1', 'canceled');
    await rig.advance(10 * MINUTE);
    expect(rig.books).toEqual({ used: 0, held: 0 });
    expect(counts()).toEqual([0, 0]);
    rig.reserve({ ref: 'm2' });
    rig.release('m1');
    expect(counts()).toEqual([1, 1]);
  });

  test('is still open: it is held for ten more minutes, and asked about again', async () => {
    rig.states.set('m1', 'open');
    await rig.advance(10 * MINUTE);
    expect(rig.holds()).toEqual([{ ref: 'm1', units: 3, expires_at: NOW + 20 * MINUTE }]);
    rig.states.set('m1', 'ended');
    await rig.advance(10 * MINUTE);
    expect(rig.asked).toEqual(['m1', 'm1']);
    expect(rig.holds()).toEqual([]);
  });

  test('has ended: the hold is free, the day keeps its count', async () => {
    rig.states.set('m1', 'ended');
    await rig.advance(10 * MINUTE);
    expect(rig.books).toEqual({ used: 0, held: 0 });
    expect(counts()).toEqual([1, 1]);
    // Its settlement comes late, and counts.
    rig.settle('m1', { consume: 3 });
    expect(rig.books).toEqual({ used: 3, held: 0 });
  });

  test('is of a time when the clock ran a year ahead: it is asked about when the clock is back (K1)', async () => {
    rig.now += YEAR;
    rig.reserve({ ref: 'ahead' });
    rig.now -= YEAR;
    rig.states.set('m1', 'ended').set('ahead', 'ended');
    await rig.advance(15 * MINUTE);
    // The quarter-hourly roll-up enters, and with it the alarm stands where the rows say.
    rig.quota.usage();
    await rig.advance(20 * MINUTE);
    expect(rig.asked).toContain('ahead');
    expect(rig.holds()).toEqual([]);
  });

  test('cannot be asked about: it stays held until the mailbox answers', async () => {
    rig.states.set('m1', 'ended');
    rig.asks.failNext(3);
    await rig.advance(10 * MINUTE);
    expect(rig.books.held).toBe(3);
    await rig.advance(30 * SECOND);
    await rig.advance(30 * SECOND);
    expect(rig.books.held).toBe(3);
    await rig.advance(30 * SECOND);
    expect(rig.books.held).toBe(0);
    expect(rig.asks.calls).toBe(4);
  });
});

describe('the question', () => {
  test('is not asked before the time, nor about what was settled', async () => {
    rig.reserve({ ref: 'm2' });
    rig.settle('m2');
    await rig.advance(10 * MINUTE - 1);
    expect(rig.asked).toEqual([]);
    await rig.advance(DAY);
    expect(rig.asked).toEqual(['m1']);
  });

  test('about one that fails does not keep the others from theirs', async () => {
    rig.reserve({ ref: 'm2' });
    rig.reserve({ ref: 'm3' });
    rig.asks.failNext(1);
    await rig.advance(10 * MINUTE);
    expect(rig.holds().map(({ ref }) => ref)).toEqual(['m1']);
  });

  test('is asked about any number of them', async () => {
    for (let i = 0; i < 120; i++) rig.reserve({ ref: `many ${i}` });
    await rig.advance(10 * MINUTE);
    await rig.advance(2 * MINUTE);
    expect(rig.holds()).toEqual([]);
    expect(rig.books.held).toBe(0);
    expect(counts()).toEqual([0, 0]);
  });

  test('that dies is asked again', async () => {
    rig.crash = 'quota.hold_expired';
    await rig.advance(10 * MINUTE);
    expect(rig.books.held).toBe(3);
    await rig.advance(MINUTE);
    expect(rig.books.held).toBe(0);
  });

  test('does not take away what was settled while it was being asked', async () => {
    rig.states.set('m1', 'open');
    const open = rig.asks.hold();
    const alarm = rig.advance(10 * MINUTE);
    rig.settle('m1', { consume: 3 });
    open();
    await alarm;
    expect(rig.books).toEqual({ used: 3, held: 0 });
    expect(rig.holds()).toEqual([]);
  });

  test('follows a hold that was extended meanwhile', async () => {
    rig.states.set('m1', 'open');
    rig.quota.apply({ op: 'extend', ref: 'm1', identity_id: DESK, until: NOW + HOUR });
    await rig.advance(HOUR - 1);
    expect(rig.asked).toEqual([]);
    await rig.advance(1);
    expect(rig.asked).toEqual(['m1']);
  });
});

describe('the alarm of a quota', () => {
  test('that the platform has lost is put back by whoever enters (E5)', () => {
    rig.now += HOUR;
    rig.storage.alarmAt = null;
    rig.quota.usageDays();
    expect(rig.storage.alarmAt).toBe(rig.now);
  });

  test('is put back by a new instance (E5)', () => {
    const at = rig.storage.alarmAt;
    rig.storage.alarmAt = null;
    rig.quota = rig.instance();
    expect(rig.storage.alarmAt).toBe(at);
  });

  test('cleans up daily: what can no longer be repeated is forgotten', async () => {
    rig.settle('m1');
    rig.quota.recordOutcome({
      identity_id: DESK,
      outcome: 'delivered',
      at: rig.now,
      event_id: 'e1',
      complaint_rate_pause: 1,
      bounce_rate_pause: 1,
    });
    const rows = (table: string): number =>
      rig.storage.sql.first<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)?.n ?? 0;
    await rig.advance(7 * DAY - 1);
    expect(rows('outcome_events')).toBe(1);
    await rig.advance(2 * DAY);
    expect([rows('outcome_events'), rows('outcomes'), rows('applied')]).toEqual([0, 1, 1]);
    await rig.advance(23 * DAY);
    expect(rows('applied')).toBe(0);
  });

  test('does not begin before the quota has an owner, and its owner stays', async () => {
    expect(rig.quota.owner()).toBe('ten_01JD9Q3V7M8X2C4N6B5K1R0E9T');
    rig.quota.init('ten_01JD9Q3V7M8X2C4N6B5K1R0E9Z');
    expect(rig.quota.owner()).toBe('ten_01JD9Q3V7M8X2C4N6B5K1R0E9T');
  });
});
