import type { AbuseOutcome } from '@pmail/core/delivery/events.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, DESK, QuotaRig, SHOP } from './quota.fixture.ts';
import type { OutcomeAnswer } from './types.ts';

/** The windows that pause an identity: more than 3 complaints in 1,000 outcomes, or more than 10 bounces in 200. */

let rig: QuotaRig;
let events = 0;

beforeEach(() => {
  rig = new QuotaRig();
});

type Judged = Omit<OutcomeAnswer, 'counted_at'>;

/** What it is judged as; when it was counted is the subject of one test. */
function record(outcome: AbuseOutcome, changes: { event_id?: string; identity_id?: typeof DESK } = {}): Judged {
  const { counted_at: _when, ...judged } = recordWhole(outcome, changes);
  return judged;
}

function recordWhole(
  outcome: AbuseOutcome,
  changes: { event_id?: string; identity_id?: typeof DESK } = {},
): OutcomeAnswer {
  return rig.quota.recordOutcome({
    identity_id: DESK,
    outcome,
    at: rig.now,
    event_id: `event ${++events}`,
    complaint_rate_pause: 0.003,
    bounce_rate_pause: 0.05,
    ...changes,
  });
}

function times(n: number, outcome: AbuseOutcome): Judged {
  let answer: Judged = { pause: false, complaints: 0, bounces: 0 };
  for (let i = 0; i < n; i++) answer = record(outcome);
  return answer;
}

const rows = (): number => rig.storage.sql.first<{ n: number }>('SELECT COUNT(*) AS n FROM outcomes')?.n ?? 0;

describe('the threshold', () => {
  test('of complaints is crossed by the fourth, however young the identity is', () => {
    expect(times(3, 'complained')).toEqual({ pause: false, complaints: 3, bounces: 0 });
    expect(record('complained')).toEqual({ pause: true, complaints: 4, bounces: 0 });
  });

  test('of bounces is crossed by the eleventh', () => {
    expect(times(10, 'bounced')).toEqual({ pause: false, complaints: 0, bounces: 10 });
    expect(record('bounced')).toEqual({ pause: true, complaints: 0, bounces: 11 });
  });

  test('is not reached by anything else', () => {
    expect(times(500, 'other')).toEqual({ pause: false, complaints: 0, bounces: 0 });
    expect(times(500, 'delivered')).toMatchObject({ pause: false });
  });

  test("is the tenant's own", () => {
    const strict = { complaint_rate_pause: 0, bounce_rate_pause: 1 };
    const request = { identity_id: DESK, outcome: 'complained', at: rig.now, event_id: 'x', ...strict } as const;
    expect(rig.quota.recordOutcome(request).pause).toBe(true);
    expect(rig.quota.recordOutcome({ ...request, complaint_rate_pause: 1, bounce_rate_pause: 1 }).pause).toBe(false);
  });

  test('counts each identity by itself', () => {
    times(4, 'complained');
    expect(record('delivered', { identity_id: SHOP })).toEqual({
      pause: false,
      complaints: 0,
      bounces: 0,
    });
  });
});

describe('a window that is over its bound', () => {
  test('calls for a pause by one more of its kind, and by nothing else', () => {
    times(4, 'complained');
    for (const outcome of ['delivered', 'other', 'bounced'] as const) {
      expect(record(outcome)).toMatchObject({ pause: false, complaints: 4 });
    }
    expect(record('complained')).toMatchObject({ pause: true, complaints: 5 });
    times(10, 'bounced');
    expect(record('complained')).toMatchObject({ pause: true });
    expect(record('delivered')).toMatchObject({ pause: false, complaints: 6, bounces: 11 });
  });
});

describe('the window', () => {
  test('of bounces is the last two hundred outcomes', () => {
    times(11, 'bounced');
    expect(times(189, 'delivered')).toMatchObject({ bounces: 11 });
    expect(record('delivered')).toMatchObject({ bounces: 10 });
    expect(record('bounced')).toMatchObject({ bounces: 10, pause: false });
  });

  test('of complaints is the last thousand', () => {
    times(4, 'complained');
    expect(times(996, 'delivered')).toMatchObject({ complaints: 4 });
    expect(record('delivered')).toMatchObject({ complaints: 3 });
    expect(record('complained')).toMatchObject({ complaints: 3, pause: false });
  });

  test('keeps a thousand rows of each identity', () => {
    times(1_200, 'delivered');
    record('delivered', { identity_id: SHOP });
    expect(rows()).toBe(1_001);
  });

  test('goes with its identity', () => {
    rig.reserve({ identity_id: DESK });
    times(3, 'complained');
    record('complained', { identity_id: SHOP });
    rig.quota.forgetIdentity(DESK);
    expect(rows()).toBe(1);
    expect(rig.counted(`sends:${DESK}`)).toBe(0);
    expect(rig.counted('sends')).toBe(1);
    expect(record('complained')).toMatchObject({ complaints: 1 });
  });
});

describe('the same event again', () => {
  test('is counted once, and judged again: whoever died before the pause still pauses (V1, V7)', () => {
    times(3, 'complained');
    const first = record('complained', { event_id: 'tips' });
    expect(first.pause).toBe(true);
    for (let i = 0; i < 3; i++) expect(record('complained', { event_id: 'tips' })).toEqual(first);
    expect(rows()).toBe(4);
  });

  test('says when it was counted, the first time', async () => {
    const counted_at = rig.now;
    expect(recordWhole('complained', { event_id: 'tips' })).toMatchObject({ counted_at });
    await rig.advance(DAY);
    expect(recordWhole('complained', { event_id: 'tips' })).toMatchObject({ counted_at });
    expect(recordWhole('complained')).toMatchObject({ counted_at: rig.now });
  });

  test('is known for seven days', async () => {
    record('complained', { event_id: 'old' });
    await rig.advance(7 * DAY - 1);
    expect(record('complained', { event_id: 'old' })).toMatchObject({ complaints: 1 });
  });

  test('that a crash undid is counted by its repeat', () => {
    rig.crash = 'quota.in_transaction';
    expect(() => record('bounced', { event_id: 'e' })).toThrow('crash');
    rig.quota = rig.instance();
    expect(record('bounced', { event_id: 'e' })).toMatchObject({ bounces: 1 });
  });
});
