import { beforeEach, describe, expect, test } from 'vitest';
import { DESK, MINUTE, NOW, QuotaRig, SHOP } from './quota.fixture.ts';

let rig: QuotaRig;

beforeEach(() => {
  rig = new QuotaRig();
  rig.reserve({ ref: 'm1', units: 3 });
});

const counts = (): number[] => [rig.counted('sends'), rig.counted(`sends:${DESK}`)];
const usage = (): number[] => [rig.counted('usage:sends'), rig.counted('usage:outbound')];

describe('a settlement', () => {
  test('turns what was accepted into use and frees the rest; the day keeps its count', () => {
    rig.settle('m1', { consume: 2 });
    expect(rig.books).toEqual({ used: 2, held: 0 });
    expect(rig.holds()).toEqual([]);
    expect(counts()).toEqual([1, 1]);
    expect(usage()).toEqual([2, 1]);
  });

  test('of nothing frees everything', () => {
    rig.settle('m1', { consume: 0, outbound: 0 });
    expect(rig.books).toEqual({ used: 0, held: 0 });
    expect(counts()).toEqual([1, 1]);
    expect(usage()).toEqual([0, 0]);
  });

  test('keeps a part until the next attempt', () => {
    rig.settle('m1', { consume: 1, keep: 1, until: NOW + 70 * MINUTE });
    expect(rig.books).toEqual({ used: 1, held: 1 });
    expect(rig.holds()).toEqual([{ ref: 'm1', units: 1, expires_at: NOW + 70 * MINUTE }]);
    rig.settle('m1', { n: 2, consume: 1, outbound: 0 });
    expect(rig.books).toEqual({ used: 2, held: 0 });
    expect(usage()).toEqual([2, 1]);
  });

  test('never keeps more than was held', () => {
    rig.settle('m1', { consume: 0, keep: 9, until: NOW + MINUTE });
    expect(rig.books).toEqual({ used: 0, held: 3 });
  });

  test('without a hold counts what was accepted all the same, and holds nothing', () => {
    rig.settle('m1', { consume: 0 });
    rig.settle('m1', { n: 2_000_000, consume: 2, keep: 1 });
    rig.settle('unknown', { consume: 1, keep: 1 });
    expect(rig.books).toEqual({ used: 3, held: 0 });
    expect(rig.holds()).toEqual([]);
  });

  test('is applied once for each ordinal, in whatever order they come', () => {
    rig.settle('m1', { n: 2, consume: 1, keep: 2, until: NOW + 70 * MINUTE });
    for (let i = 0; i < 3; i++) rig.settle('m1', { n: 2, consume: 1 });
    rig.settle('m1', { n: 1, consume: 1 });
    rig.settle('m1', { n: 1, consume: 1, keep: 3 });
    expect(rig.books).toEqual({ used: 2, held: 0 });
    expect(usage()[0]).toBe(2);
  });

  test.each([
    ['the same under another ordinal', { n: 2_000_000, accepted: [0, 48] }],
    ['some of them and others', { n: 2_000_001, accepted: [48, 1] }],
    ['the same under the ordinal of before', { n: 1, accepted: [0, 48] }],
    ['others under the ordinal of before', { n: 1, accepted: [1, 2] }],
  ])('counts each recipient once, whatever names it again: %s (P7)', (_name, { n, accepted }) => {
    rig.settle('m1', { consume: 2, accepted: [0, 48], keep: 1, until: NOW + 70 * MINUTE });
    rig.settle('m1', { n, consume: accepted.length, accepted, keep: 9 });
    const all = new Set([0, 48, ...accepted]).size;
    expect(usage()).toEqual([all, 1]);
    expect(rig.books.used).toBe(all);
  });

  test('under the ordinal of one before leaves what is held as it is', () => {
    rig.settle('m1', { consume: 1, accepted: [0], keep: 2, until: NOW + 70 * MINUTE });
    rig.settle('m1', { consume: 1, accepted: [1], keep: 0 });
    expect(rig.books).toEqual({ used: 2, held: 2 });
  });

  test('of a mailbox that does not say whom it counts, as older ones do, counts as many as it says (P3)', () => {
    rig.settle('m1', { consume: 2 });
    rig.settle('m1', { n: 2, consume: 1, outbound: 0 });
    expect(usage()).toEqual([3, 1]);
  });

  test('of one ref does not settle another', () => {
    rig.reserve({ ref: 'm2' });
    rig.settle('m1');
    expect(rig.holds().map(({ ref }) => ref)).toEqual(['m2']);
  });

  test('that a crash undoes can be made again', () => {
    rig.crash = 'quota.in_transaction';
    expect(() => rig.settle('m1', { consume: 2 })).toThrow('crash');
    rig.quota = rig.instance();
    expect(rig.books).toEqual({ used: 0, held: 3 });
    rig.settle('m1', { consume: 2 });
    expect(rig.books).toEqual({ used: 2, held: 0 });
  });
});

describe('a release', () => {
  test('gives back the hold and the count of its day, once', () => {
    rig.reserve({ ref: 'm2' });
    for (let i = 0; i < 3; i++) rig.release('m1');
    expect(rig.books).toEqual({ used: 0, held: 1 });
    expect(counts()).toEqual([1, 1]);
  });

  test('gives the count back to the day it was taken from', () => {
    rig.now = Date.UTC(2026, 11, 1, 1);
    rig.reserve({ ref: 'm2' });
    rig.release('m1');
    expect(rig.storage.sql.all("SELECT window, value FROM counters WHERE metric = 'sends' ORDER BY window")).toEqual([
      { window: '2026-11-30', value: 0 },
      { window: '2026-12-01', value: 1 },
    ]);
  });

  test('of the system identity gives the tenant nothing it had not taken', () => {
    rig.reserve({ ref: 'sys', identity_id: SHOP, tenant_cap: null });
    rig.release('sys');
    expect(rig.counted('sends')).toBe(1);
    expect(rig.counted(`sends:${SHOP}`)).toBe(0);
  });

  test('before its reserve bars it: what comes too late takes nothing (S11)', () => {
    rig.release('late');
    expect(rig.reserve({ ref: 'late' })).toEqual({ kind: 'released' });
    expect(rig.books.held).toBe(3);
    expect(counts()).toEqual([1, 1]);
  });

  test('after it bars a repeat of the reserve (S11)', () => {
    rig.release('m1');
    expect(rig.reserve({ ref: 'm1', units: 3 })).toEqual({ kind: 'released' });
    expect(rig.books.held).toBe(0);
  });

  test('of what was settled changes nothing', () => {
    rig.settle('m1', { consume: 3 });
    rig.release('m1');
    expect(rig.books).toEqual({ used: 3, held: 0 });
    expect(counts()).toEqual([1, 1]);
  });
});

describe('an extension', () => {
  test('moves the end of the hold, only ever later', () => {
    rig.quota.apply({ op: 'extend', ref: 'm1', identity_id: DESK, until: NOW + 70 * MINUTE });
    rig.quota.apply({ op: 'extend', ref: 'm1', identity_id: DESK, until: NOW + 20 * MINUTE });
    expect(rig.holds()).toEqual([{ ref: 'm1', units: 3, expires_at: NOW + 70 * MINUTE }]);
  });

  test('of what is gone changes nothing', () => {
    rig.settle('m1');
    rig.quota.apply({ op: 'extend', ref: 'm1', identity_id: DESK, until: NOW + 70 * MINUTE });
    expect(rig.holds()).toEqual([]);
    expect(rig.books.held).toBe(0);
  });
});

describe('usage', () => {
  test('is counted once for each ref', () => {
    const inbound = { op: 'usage', ref: 'in1', identity_id: DESK, metric: 'inbound', amount: 1 } as const;
    for (let i = 0; i < 3; i++) rig.quota.apply(inbound);
    rig.quota.apply({ ...inbound, ref: 'in2' });
    expect(rig.counted('usage:inbound')).toBe(2);
  });

  test('is counted by UTC day, whatever the zone', () => {
    rig.now = Date.UTC(2026, 10, 29, 23, 59);
    rig.settle('m1', { consume: 2 });
    rig.now = Date.UTC(2026, 10, 30, 0, 1);
    rig.settle('m1', { n: 2, consume: 1, outbound: 0 });
    expect(rig.quota.usageDays()).toEqual(
      expect.arrayContaining([
        { day: '2026-11-29', metric: 'sends', value: 2 },
        { day: '2026-11-29', metric: 'outbound', value: 1 },
        { day: '2026-11-30', metric: 'sends', value: 1 },
      ]),
    );
  });

  test('is kept until it was written, and then as long as its day can still be counted on', () => {
    const days = (): string[] => rig.quota.usageDays().map(({ day, value }) => `${day} ${value}`);
    rig.now = Date.UTC(2026, 10, 30, 12);
    rig.settle('m1', { consume: 1, outbound: 0 });
    // The roll-up is away for days.
    rig.now = Date.UTC(2026, 11, 3);
    expect(days()).toEqual(['2026-11-30 1']);
    rig.now = Date.UTC(2026, 11, 1);
    rig.quota.usageWritten(['2026-11-30']);
    expect(days()).toEqual(['2026-11-30 1']);
    rig.now = Date.UTC(2026, 11, 2);
    rig.quota.usageWritten(['2026-11-29']);
    expect(days()).toEqual(['2026-11-30 1']);
    rig.quota.usageWritten(['2026-11-30']);
    expect(days()).toEqual([]);
    // What the caps count is not usage, and stays.
    expect(rig.counted('sends')).toBe(1);
  });
});

describe('what is shown', () => {
  test('of a metered tenant says what is granted, used, held and left', () => {
    rig.quota.setBilling('metered', { sends: 10, inboxes: 2 });
    rig.reserve({ ref: 'm2', units: 2 });
    rig.settle('m2', { consume: 2 });
    const usageNow = rig.quota.usage();
    expect(usageNow).toMatchObject({ billing: 'metered', period_start: Date.UTC(2026, 10, 1) });
    expect(usageNow.features.map(({ feature }) => feature)).toEqual([
      'inboxes',
      'sends',
      'custom_domains',
      'storage_gb',
    ]);
    expect(usageNow.features[1]).toEqual({
      feature: 'sends',
      granted: 10,
      used: 2,
      held: 3,
      remaining: 5,
      unlimited: false,
      resets_at: Date.UTC(2026, 11, 1),
    });
    expect(usageNow.features[2]).toMatchObject({ granted: null, remaining: null, unlimited: true, resets_at: null });
  });

  test('as left is never below zero', () => {
    rig.quota.setBilling('metered', { sends: 1 });
    expect(rig.quota.usage().features[1]).toMatchObject({ granted: 1, held: 3, remaining: 0 });
  });

  test('of every other tenant is unlimited', () => {
    expect(rig.quota.usage()).toMatchObject({ billing: 'disabled' });
    expect(rig.quota.usage().features.every(({ unlimited }) => unlimited)).toBe(true);
  });
});
