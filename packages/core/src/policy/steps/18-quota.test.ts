import { describe, expect, it } from 'vitest';
import { runLate } from '../context.fixture.ts';
import { quota } from './18-quota.ts';

describe('step 18: allowance and daily caps', () => {
  it('lets a send pass that has its hold and its count', () => {
    expect(runLate(quota, { reservation: { kind: 'ok' } })).toBeNull();
  });

  it('answers a used-up allowance with what was granted and used', () => {
    const reservation = {
      kind: 'denied',
      feature: 'sends',
      granted: 1_000,
      used: 1_000,
      resets_at: '2026-12-01T00:00:00.000Z',
    } as const;
    expect(runLate(quota, { reservation })).toEqual({
      ok: false,
      code: 'billing_limit',
      details: {
        feature: 'sends',
        granted: 1_000,
        used: 1_000,
        resets_at: '2026-12-01T00:00:00.000Z',
        upgrade_url: null,
      },
    });
  });

  it('keeps resets_at empty for an allowance that never resets', () => {
    const reservation = { kind: 'denied', feature: 'storage_gb', granted: 1, used: 1, resets_at: null } as const;
    expect(runLate(quota, { reservation })).toMatchObject({ details: { feature: 'storage_gb', resets_at: null } });
  });

  it.each(['identity', 'tenant'] as const)('answers a reached cap with whose it is and its end: %s', (scope) => {
    const resets_at = '2026-11-30T23:00:00.000Z';
    expect(runLate(quota, { reservation: { kind: 'cap_reached', scope, resets_at } })).toEqual({
      ok: false,
      code: 'daily_cap_reached',
      details: { cap: scope, resets_at },
    });
  });
});
