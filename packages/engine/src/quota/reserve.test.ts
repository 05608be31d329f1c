import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, DESK, HOUR, MINUTE, NOW, QuotaRig, SHOP } from './quota.fixture.ts';

let rig: QuotaRig;

beforeEach(() => {
  rig = new QuotaRig();
});

const FREE = { used: 0, held: 0 };

describe('a reserve', () => {
  test('holds the recipients and counts the message, for identity and tenant', () => {
    expect(rig.reserve({ ref: 'm1', units: 3 })).toEqual({
      kind: 'ok',
      identity_used: 1,
      tenant_used: 1,
      day: '2026-11-30',
      warnings: [],
    });
    rig.reserve({ identity_id: SHOP });
    expect(rig.books).toEqual({ used: 0, held: 4 });
    expect(rig.holds()[0]).toEqual({ ref: 'm1', units: 3, expires_at: NOW + 10 * MINUTE });
    expect([rig.counted('sends'), rig.counted(`sends:${DESK}`), rig.counted(`sends:${SHOP}`)]).toEqual([2, 1, 1]);
  });

  test('repeated with its ref changes nothing, and answers in kind', () => {
    const first = rig.reserve({ ref: 'm1', units: 2 });
    const before = rig.storage.dump();
    expect(rig.reserve({ ref: 'm1', units: 2 })).toEqual(first);
    rig.now += DAY;
    expect(rig.reserve({ ref: 'm1', units: 2 })).toMatchObject({ kind: 'ok', day: '2026-11-30' });
    expect(rig.holds()).toHaveLength(1);
    expect(before).toContain('m1');
    expect(rig.counted('sends')).toBe(1);
  });

  test('repeated never warns again', () => {
    expect(rig.reserve({ ref: 'm1', identity_cap: 1 })).toMatchObject({
      warnings: [{ percent: 80 }, { percent: 100 }],
    });
    expect(rig.reserve({ ref: 'm1', identity_cap: 1 })).toMatchObject({ kind: 'ok', warnings: [] });
  });

  test('that a crash undoes leaves nothing', () => {
    rig.crash = 'quota.in_transaction';
    expect(() => rig.reserve()).toThrow('crash');
    rig.quota = rig.instance();
    expect(rig.books).toEqual(FREE);
    expect(rig.holds()).toEqual([]);
    expect(rig.counted('sends')).toBe(0);
  });
});

describe('the caps', () => {
  test('refuse with whose it is and its end, and keep nothing', () => {
    rig.reserve({ identity_cap: 1 });
    expect(rig.reserve({ identity_cap: 1, tenant_cap: 1 })).toEqual({
      kind: 'cap_reached',
      scope: 'identity',
      resets_at: Date.UTC(2026, 11, 1),
    });
    expect(rig.reserve({ identity_cap: 5, tenant_cap: 1 })).toMatchObject({ kind: 'cap_reached', scope: 'tenant' });
    expect(rig.reserve({ identity_id: SHOP, tenant_cap: 1 })).toMatchObject({ scope: 'tenant' });
    expect(rig.books.held).toBe(1);
    expect([rig.counted('sends'), rig.counted(`sends:${DESK}`)]).toEqual([1, 1]);
  });

  test('of zero refuse everything', () => {
    expect(rig.reserve({ identity_cap: 0 })).toMatchObject({ kind: 'cap_reached', scope: 'identity' });
    expect(rig.reserve({ tenant_cap: 0 })).toMatchObject({ kind: 'cap_reached', scope: 'tenant' });
  });

  test('of the tenant neither bind nor count the system identity', () => {
    rig.reserve({ tenant_cap: 1 });
    expect(rig.reserve({ identity_id: SHOP, tenant_cap: null })).toMatchObject({ kind: 'ok', tenant_used: null });
    expect(rig.counted('sends')).toBe(1);
    expect(rig.counted(`sends:${SHOP}`)).toBe(1);
  });

  test('warn at 80 % and at 100 %, each once in a day, for each scope by itself', () => {
    const warnings = (): string[] => {
      const answer = rig.reserve({ identity_cap: 10, tenant_cap: 5 });
      return answer.kind === 'ok'
        ? answer.warnings.map(({ scope, percent, used }) => `${scope} ${percent} ${used}`)
        : [];
    };
    expect([1, 2, 3, 4, 5].map(warnings)).toEqual([[], [], [], ['tenant 80 4'], ['tenant 100 5']]);
    rig.now += DAY;
    expect([1, 2, 3, 4].flatMap(warnings)).toEqual(['tenant 80 4']);
  });

  test('that are lowered under the count warn with the next send that passes', () => {
    for (let i = 0; i < 4; i++) rig.reserve({ identity_cap: 100 });
    expect(rig.reserve({ identity_cap: 5 })).toMatchObject({
      warnings: [
        { scope: 'identity', percent: 80, used: 5, limit: 5 },
        { scope: 'identity', percent: 100, used: 5, limit: 5 },
      ],
    });
  });
});

describe('the allowance', () => {
  beforeEach(() => {
    rig.quota.setBilling('metered', { sends: 3, storage_gb: 1 });
  });

  test('counts what is used and what is held, and is checked before the caps', () => {
    rig.reserve({ ref: 'm1', units: 2 });
    expect(rig.reserve({ units: 2, identity_cap: 0 })).toEqual({
      kind: 'denied',
      feature: 'sends',
      granted: 3,
      used: 0,
      resets_at: Date.UTC(2026, 11, 1),
      first_in_period: true,
    });
    rig.settle('m1', { consume: 2 });
    expect(rig.reserve({ units: 2 })).toMatchObject({ kind: 'denied', used: 2, first_in_period: false });
    expect(rig.reserve({ units: 1, identity_cap: 0 })).toMatchObject({ kind: 'cap_reached' });
    expect(rig.reserve({ units: 1 })).toMatchObject({ kind: 'ok' });
    expect(rig.reserve({ units: 1 })).toMatchObject({ kind: 'denied' });
  });

  test('that denies keeps neither hold nor count', () => {
    expect(rig.reserve({ units: 4 })).toMatchObject({ kind: 'denied' });
    expect(rig.books).toEqual(FREE);
    expect(rig.counted('sends')).toBe(0);
  });

  test('of a gate refuses once it is over, and no sooner', () => {
    const { sql } = rig.storage;
    sql.run("UPDATE allowances SET used = 1 WHERE feature = 'storage_gb'");
    expect(rig.reserve({ gates: ['storage_gb'] })).toMatchObject({ kind: 'ok' });
    sql.run("UPDATE allowances SET used = 2 WHERE feature = 'storage_gb'");
    expect(rig.reserve({ gates: ['storage_gb'] })).toMatchObject({
      kind: 'denied',
      feature: 'storage_gb',
      granted: 1,
      used: 2,
      resets_at: null,
      first_in_period: true,
    });
    expect(rig.reserve()).toMatchObject({ kind: 'ok' });
  });

  test('says the first denial of each feature in each period', () => {
    rig.storage.sql.run("UPDATE allowances SET used = 2 WHERE feature = 'storage_gb'");
    const first = (request: Parameters<QuotaRig['reserve']>[0]): unknown => {
      const answer = rig.reserve(request);
      return answer.kind === 'denied' ? answer.first_in_period : answer.kind;
    };
    expect([first({ units: 9 }), first({ units: 9 }), first({ gates: ['storage_gb'] })]).toEqual([true, false, true]);
    rig.now = Date.UTC(2026, 11, 1);
    expect([first({ units: 9 }), first({ gates: ['storage_gb'] })]).toEqual([true, true]);
  });

  test.each(['exempt', 'disabled'] as const)('denies nothing in mode %s, and counts all the same', (mode) => {
    rig.quota.setBilling(mode, { sends: 1, storage_gb: 0 });
    rig.storage.sql.run("UPDATE allowances SET used = 9 WHERE feature = 'storage_gb'");
    expect(rig.reserve({ ref: 'm1', units: 40, gates: ['storage_gb'] })).toMatchObject({ kind: 'ok' });
    rig.settle('m1', { consume: 40 });
    expect(rig.books).toEqual({ used: 40, held: 0 });
  });

  test('without a number is unlimited', () => {
    rig.quota.setBilling('metered', { sends: null });
    expect(rig.reserve({ units: 1_000, gates: ['storage_gb'] })).toMatchObject({ kind: 'ok' });
  });
});

describe('the month', () => {
  beforeEach(() => {
    rig.quota.setBilling('metered', { sends: 3 });
    rig.reserve({ ref: 'm1', units: 2 });
    rig.settle('m1', { consume: 2 });
    rig.reserve({ ref: 'm2' });
  });

  test('ends on the first, 00:00 UTC: what was used is free again, what is held stays held', () => {
    rig.now = Date.UTC(2026, 11, 1) - 1;
    expect(rig.reserve()).toMatchObject({ kind: 'denied' });
    rig.now += 1;
    expect(rig.reserve({ units: 2 })).toMatchObject({ kind: 'ok' });
    expect(rig.books).toEqual({ used: 0, held: 3 });
    expect(rig.reserve()).toMatchObject({ kind: 'denied', resets_at: Date.UTC(2027, 0, 1) });
  });

  test('ends by the alarm too', async () => {
    rig.states.set('m2', 'open');
    await rig.advance(16 * HOUR);
    expect(rig.storage.sql.first("SELECT used, held FROM allowances WHERE feature = 'sends'")).toEqual({
      used: 0,
      held: 1,
    });
  });

  test('is settled into: what was held before its end is used after it', () => {
    rig.now = Date.UTC(2026, 11, 2);
    rig.settle('m2');
    expect(rig.books).toEqual({ used: 1, held: 0 });
  });

  test('ends once, whatever number of years has passed (K1)', () => {
    rig.now += 366 * DAY;
    expect(rig.quota.usage()).toMatchObject({ period_start: Date.UTC(2027, 11, 1), period_end: Date.UTC(2028, 0, 1) });
    expect(rig.books.used).toBe(0);
  });

  test('is not granted again by a clock that goes back a little (K2)', () => {
    rig.now = Date.UTC(2026, 11, 1);
    rig.reserve({ ref: 'm3', units: 2 });
    rig.settle('m3', { consume: 2 });
    rig.now = Date.UTC(2026, 10, 30, 23);
    expect(rig.books.used).toBe(2);
    rig.now = Date.UTC(2026, 11, 1, 1);
    expect(rig.books.used).toBe(2);
  });

  test('of a clock that ran far ahead is put right (K2)', () => {
    rig.now += 300 * DAY;
    expect(rig.books.used).toBe(0);
    rig.now = NOW;
    expect(rig.quota.usage()).toMatchObject({ period_start: Date.UTC(2026, 10, 1), period_end: Date.UTC(2026, 11, 1) });
  });
});
