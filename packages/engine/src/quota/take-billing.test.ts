import { beforeEach, describe, expect, test } from 'vitest';
import { QuotaRig } from './quota.fixture.ts';
import type { Billing, UsageAnswer } from './types.ts';

let rig: QuotaRig;

beforeEach(() => {
  rig = new QuotaRig();
});

const sends = (): UsageAnswer['features'][number] | undefined =>
  rig.quota.usage().features.find(({ feature }) => feature === 'sends');

const granting = (amount: number | null, asOf: number, mode: Billing['mode'] = 'metered'): Billing => ({
  mode,
  granted: { sends: amount },
  as_of: asOf,
});

describe('what the directory grants', () => {
  test('is taken over', () => {
    rig.quota.takeBilling(granting(3, 1));
    expect(rig.quota.usage().billing).toBe('metered');
    expect(sends()).toMatchObject({ granted: 3, remaining: 3, unlimited: false });
  });

  test('and again changes nothing', () => {
    rig.quota.takeBilling(granting(3, 1));
    rig.quota.takeBilling(granting(3, 1));
    expect(sends()).toMatchObject({ granted: 3 });
  });

  test('stays as it was last, whatever comes late', () => {
    rig.quota.takeBilling(granting(5, 2));
    rig.quota.takeBilling(granting(3, 1));
    rig.quota.takeBilling(granting(4, 2, 'exempt'));
    expect(rig.quota.usage().billing).toBe('metered');
    expect(sends()).toMatchObject({ granted: 5 });
    rig.quota.takeBilling(granting(null, 3));
    expect(sends()).toMatchObject({ granted: null, unlimited: true });
  });

  test('is remembered by the next instance, and so is how late it was', () => {
    rig.quota.takeBilling(granting(5, 2));
    rig.quota = rig.instance();
    rig.quota.takeBilling(granting(3, 1));
    expect(sends()).toMatchObject({ granted: 5 });
  });

  test('is kept outside mode metered without effect', () => {
    rig.quota.takeBilling(granting(0, 1, 'exempt'));
    expect(rig.quota.usage().billing).toBe('exempt');
    expect(sends()).toMatchObject({ granted: null, unlimited: true });
  });
});
