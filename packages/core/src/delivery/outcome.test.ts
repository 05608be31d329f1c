import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TransportResult } from '../transport/types.ts';
import { type OutcomeFacts, type OutcomePlan, planDeferral, planOutcome } from './outcome.ts';

const A = 'a@example.net';
const B = 'b@example.net';
const C = 'c@example.net';
const NOW = Date.UTC(2026, 10, 30, 9);
const DAY = 24 * 3_600_000;

function facts(overrides: Partial<OutcomeFacts> = {}): OutcomeFacts {
  // With a chance of one half the jitter is nothing.
  return { queued: [A, B, C], backoff_n: 0, submitted_at: NOW, now: NOW, random: 0.5, ...overrides };
}

function accepted(overrides: Partial<Extract<TransportResult, { kind: 'accepted' }>> = {}): TransportResult {
  return {
    kind: 'accepted',
    provider_message_id: 'prov-1',
    rfc_message_id: 'rfc-1@example.com',
    refused: [],
    deferred: [],
    scheduled: [],
    copies: [],
    ...overrides,
  };
}

function refusal(address: string, smtp_code: string | null = '550', enhanced_code: string | null = '5.1.1') {
  return { address, smtp_code, enhanced_code, detail: 'no such user' };
}

function statuses(plan: OutcomePlan): Record<string, string> {
  return Object.fromEntries(plan.changes.map(({ address, status }) => [address, status]));
}

describe('an accepted message', () => {
  it('is submitted to every recipient and keeps both ids', () => {
    const plan = planOutcome(accepted(), facts());
    expect(statuses(plan)).toEqual({ [A]: 'submitted', [B]: 'submitted', [C]: 'submitted' });
    expect(plan).toMatchObject({
      retry: null,
      reason: null,
      detail: null,
      accepted: true,
      provider_message_id: 'prov-1',
      rfc_message_id: 'rfc-1@example.com',
      unknown: false,
    });
  });

  it('counts as accepted without an id of the provider too', () => {
    const plan = planOutcome(accepted({ provider_message_id: null, rfc_message_id: null }), facts({ queued: [A] }));
    expect(statuses(plan)).toEqual({ [A]: 'submitted' });
    expect(plan).toMatchObject({ accepted: true, provider_message_id: null, rfc_message_id: null });
  });

  it('is the only result that counts as accepted', () => {
    const others: TransportResult[] = [
      { kind: 'rejected', reason: 'provider_validation', code: '', detail: '', refused: [] },
      { kind: 'suppressed', code: '', detail: '' },
      { kind: 'retry_later', class: 'relay', code: '', detail: '', refused: [] },
      { kind: 'unknown', reason: 'transport_timeout', detail: '' },
    ];
    for (const other of others) expect(planOutcome(other, facts()).accepted).toBe(false);
  });

  it('rejects the recipients that the relay refused, with its reply, code and text apart', () => {
    const plan = planOutcome(accepted({ refused: [refusal(B)] }), facts());
    expect(statuses(plan)).toEqual({ [A]: 'submitted', [B]: 'rejected', [C]: 'submitted' });
    expect(plan.changes.find(({ address }) => address === B)).toEqual({
      address: B,
      status: 'rejected',
      smtp_code: '550',
      enhanced_code: '5.1.1',
      smtp_response: 'no such user',
    });
    expect(plan.retry).toBeNull();
  });

  it('leaves the recipients queued that the relay put off, and tries them again as a relay', () => {
    const plan = planOutcome(accepted({ refused: [refusal(B)], deferred: [C] }), facts());
    expect(statuses(plan)).toEqual({ [A]: 'submitted', [B]: 'rejected' });
    expect(plan.retry).toEqual({ n: 1, at: NOW + 60_000, delay_ms: 60_000 });
    expect(plan).toMatchObject({ provider_message_id: 'prov-1', reason: null });
  });

  it('fails the recipients that are still put off after a day', () => {
    const plan = planOutcome(
      accepted({ deferred: [B] }),
      facts({ queued: [A, B], backoff_n: 30, submitted_at: NOW - DAY }),
    );
    expect(statuses(plan)).toEqual({ [A]: 'submitted', [B]: 'failed' });
    expect(plan).toMatchObject({ retry: null, reason: 'quota_exhausted', provider_message_id: 'prov-1' });
  });

  it('takes a recipient that is both refused and put off for refused', () => {
    const plan = planOutcome(accepted({ refused: [refusal(A)], deferred: [A] }), facts({ queued: [A] }));
    expect(statuses(plan)).toEqual({ [A]: 'rejected' });
    expect(plan.retry).toBeNull();
  });

  it('ignores what the transport says about recipients it was not called for', () => {
    const plan = planOutcome(accepted({ refused: [refusal(B)], deferred: [C] }), facts({ queued: [A] }));
    expect(statuses(plan)).toEqual({ [A]: 'submitted' });
    expect(plan.retry).toBeNull();
  });
});

describe('a rejected message', () => {
  it.each(['provider_validation', 'sender_domain_unavailable', 'recipient_suppressed_by_provider'] as const)(
    'is rejected for every recipient and never tried again: %s',
    (reason) => {
      const plan = planOutcome({ kind: 'rejected', reason, code: 'E_X', detail: 'why', refused: [] }, facts());
      expect(statuses(plan)).toEqual({ [A]: 'rejected', [B]: 'rejected', [C]: 'rejected' });
      expect(plan).toMatchObject({
        reason,
        detail: 'E_X: why',
        retry: null,
        provider_message_id: null,
        unknown: false,
      });
      expect(plan.changes[0]).toMatchObject({ smtp_code: null, smtp_response: 'E_X: why' });
    },
  );

  it('shows the reply code of a relay, and the own reply of each recipient that has one', () => {
    const plan = planOutcome(
      { kind: 'rejected', reason: 'provider_validation', code: '554', detail: 'no', refused: [refusal(B)] },
      facts({ queued: [A, B] }),
    );
    expect(plan.changes).toEqual([
      { address: A, status: 'rejected', smtp_code: '554', enhanced_code: null, smtp_response: '554: no' },
      { address: B, status: 'rejected', smtp_code: '550', enhanced_code: '5.1.1', smtp_response: 'no such user' },
    ]);
  });

  it.each([
    ['E_X', '', 'E_X'],
    ['', 'why', 'why'],
    ['550', '550 5.7.1 no', '550 5.7.1 no'],
  ])('says code and detail once: %j, %j', (code, detail, shown) => {
    const plan = planOutcome({ kind: 'rejected', reason: 'provider_validation', code, detail, refused: [] }, facts());
    expect(plan.detail).toBe(shown);
  });

  it('keeps at most 512 characters of the reply on a delivery', () => {
    const long = `${'x'.repeat(511)}😀`;
    const plan = planOutcome(
      {
        kind: 'rejected',
        reason: 'provider_validation',
        code: '',
        detail: long,
        refused: [{ ...refusal(B), detail: long }],
      },
      facts({ queued: [A, B] }),
    );
    for (const { smtp_response } of plan.changes) expect(smtp_response).toBe('x'.repeat(511));
  });
});

describe('recipients that the provider suppresses and nobody can name', () => {
  it('end the message as rejected with a reason of its own', () => {
    const plan = planOutcome({ kind: 'suppressed', code: 'E_RECIPIENT_SUPPRESSED', detail: 'no token' }, facts());
    expect(statuses(plan)).toEqual({ [A]: 'rejected', [B]: 'rejected', [C]: 'rejected' });
    expect(plan).toMatchObject({ reason: 'recipient_suppressed_by_provider', retry: null, unknown: false });
  });
});

describe('a message put off', () => {
  const later = (kind: Extract<TransportResult, { kind: 'retry_later' }>['class'], refused = [refusal(B)]) =>
    ({ kind: 'retry_later', class: kind, code: '451', detail: 'later', refused }) as const;

  it.each([
    ['rate_limit', [10, 20, 30, 40, 50, 60, 60]],
    ['quota', [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]],
    ['paused', [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]],
    ['relay', [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]],
  ] as const)('waits by the schedule of its class: %s', (kind, seconds) => {
    const waits = seconds.map((_, n) => planOutcome(later(kind, []), facts({ backoff_n: n })).retry);
    expect(waits).toEqual(seconds.map((s, n) => ({ n: n + 1, at: NOW + s * 1_000, delay_ms: s * 1_000 })));
  });

  it('changes nothing about the recipients that wait', () => {
    const plan = planOutcome(later('quota', []), facts());
    expect(plan).toMatchObject({ changes: [], reason: null, provider_message_id: null, unknown: false });
  });

  it('rejects those refused for good', () => {
    const plan = planOutcome(later('relay'), facts());
    expect(statuses(plan)).toEqual({ [B]: 'rejected' });
    expect(plan.retry).not.toBeNull();
  });

  it('is over when everybody was refused for good', () => {
    const plan = planOutcome(later('relay'), facts({ queued: [B] }));
    expect(statuses(plan)).toEqual({ [B]: 'rejected' });
    expect(plan).toMatchObject({ retry: null, reason: 'provider_validation', detail: '451: later' });
  });

  it('may be tried again until exactly 24 hours after it was accepted', () => {
    const last = facts({ submitted_at: NOW + 10_000 - DAY });
    expect(planOutcome(later('rate_limit', []), last).retry).toMatchObject({ at: last.submitted_at + DAY });
    const over = planOutcome(later('rate_limit', []), facts({ submitted_at: NOW + 10_000 - DAY - 1 }));
    expect(over).toMatchObject({ retry: null, reason: 'quota_exhausted' });
    expect(statuses(over)).toEqual({ [A]: 'failed', [B]: 'failed', [C]: 'failed' });
  });

  it.each(['rate_limit', 'quota', 'paused', 'relay'] as const)('fails at the end whatever its class: %s', (kind) => {
    const plan = planOutcome(later(kind), facts({ submitted_at: NOW - DAY, backoff_n: 20 }));
    expect(statuses(plan)).toEqual({ [A]: 'failed', [B]: 'rejected', [C]: 'failed' });
    expect(plan).toMatchObject({ retry: null, reason: 'quota_exhausted' });
  });

  it('without a transport call waits like a paused one and ends like one', () => {
    expect(planDeferral('domain is verifying', facts({ backoff_n: 1 }))).toMatchObject({
      changes: [],
      retry: { n: 2, delay_ms: 120_000 },
      unknown: false,
    });
    const over = planDeferral('domain is verifying', facts({ submitted_at: NOW - DAY }));
    expect(over).toMatchObject({ retry: null, reason: 'quota_exhausted', detail: 'domain is verifying' });
    expect(statuses(over)).toEqual({ [A]: 'failed', [B]: 'failed', [C]: 'failed' });
  });
});

describe('an unknown outcome', () => {
  it.each(['transport_timeout', 'transport_connection_lost'] as const)(
    'makes every recipient uncertain and is never tried again: %s',
    (reason) => {
      const plan = planOutcome({ kind: 'unknown', reason, detail: 'silence' }, facts());
      expect(statuses(plan)).toEqual({ [A]: 'uncertain', [B]: 'uncertain', [C]: 'uncertain' });
      expect(plan).toMatchObject({ reason, retry: null, unknown: true, provider_message_id: null });
    },
  );

  it('is not tried again however early it is', () => {
    const plan = planOutcome({ kind: 'unknown', reason: 'transport_timeout', detail: '' }, facts({ backoff_n: 0 }));
    expect(plan.retry).toBeNull();
  });
});

describe('every plan', () => {
  const address = fc.constantFrom(A, B, C, 'd@example.net');
  const refused = fc.uniqueArray(address).map((list) => list.map((entry) => refusal(entry)));
  const text = fc.string();
  const result: fc.Arbitrary<TransportResult> = fc.oneof(
    fc.tuple(refused, fc.uniqueArray(address)).map(([list, deferred]) => accepted({ refused: list, deferred })),
    fc
      .tuple(refused, text, text)
      .map(
        ([list, code, detail]) =>
          ({ kind: 'rejected', reason: 'provider_validation', code, detail, refused: list }) as const,
      ),
    fc.tuple(text, text).map(([code, detail]) => ({ kind: 'suppressed', code, detail }) as const),
    fc
      .tuple(fc.constantFrom('rate_limit', 'quota', 'paused', 'relay'), refused, text)
      .map(([kind, list, detail]) => ({ kind: 'retry_later', class: kind, code: '', detail, refused: list }) as const),
    text.map((detail) => ({ kind: 'unknown', reason: 'transport_timeout', detail }) as const),
  );
  const given = fc.record({
    queued: fc.uniqueArray(fc.constantFrom(A, B, C), { minLength: 1 }),
    backoff_n: fc.nat(60),
    submitted_at: fc.integer({ min: NOW - 2 * DAY, max: NOW }),
    now: fc.constant(NOW),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });

  it('changes each queued recipient at most once and nobody else', () => {
    fc.assert(
      fc.property(result, given, (outcome, known) => {
        const changed = planOutcome(outcome, known).changes.map((change) => change.address);
        expect(new Set(changed).size).toBe(changed.length);
        for (const entry of changed) expect(known.queued).toContain(entry);
      }),
    );
  });

  it('has a retry exactly when somebody stays queued, and never one after the day is over', () => {
    fc.assert(
      fc.property(result, given, (outcome, known) => {
        const { changes, retry } = planOutcome(outcome, known);
        expect(retry !== null).toBe(changes.length < known.queued.length);
        if (retry === null) return;
        expect(retry.at).toBe(NOW + retry.delay_ms);
        expect(retry.at).toBeLessThanOrEqual(known.submitted_at + DAY);
        expect(['accepted', 'retry_later']).toContain(outcome.kind);
      }),
    );
  });
});
