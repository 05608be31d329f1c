import type { MessageId } from '@pmail/core/ids.ts';
import type { TransportResult } from '@pmail/core/transport/types.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, DAY, HOUR, JO, KIM, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import { accepted, attempt, facts, REJECTED, Run, refusal, report, retryLater, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
});

const SUPPRESSED: TransportResult = { kind: 'suppressed', code: 'E_RECIPIENT_SUPPRESSED', detail: 'on the list' };
const LOST: TransportResult = { kind: 'unknown', reason: 'transport_connection_lost', detail: 'reset' };
const NO_DOMAIN: TransportResult = {
  kind: 'rejected',
  reason: 'sender_domain_unavailable',
  code: 'E_SENDER_NOT_VERIFIED',
  detail: 'not verified',
  refused: [],
};

describe('each kind of result', () => {
  test.each([
    ['accepted', accepted(), 'submitted', null, ['message.sent'], 2],
    ['rejected', REJECTED, 'rejected', 'provider_validation', ['message.rejected'], 0],
    ['no domain', NO_DOMAIN, 'rejected', 'sender_domain_unavailable', ['message.rejected'], 0],
    ['suppressed', SUPPRESSED, 'rejected', 'recipient_suppressed_by_provider', ['message.rejected'], 0],
    ['time-out', TIMEOUT, 'uncertain', 'transport_timeout', ['message.uncertain'], 0],
    ['lost', LOST, 'uncertain', 'transport_connection_lost', ['message.uncertain'], 0],
  ] as const)(
    '%s ends the wait, settles the hold and tells of it',
    async (_kind, result, status, reason, events, used) => {
      expect(await attempt(rig, id, result)).toEqual({ applied: true, delay_ms: null });
      expect(rig.message(id)).toMatchObject({ status, status_reason: reason });
      expect(rig.statuses(id)).toEqual({ [JO]: status, [KIM]: status });
      expect(rig.eventTypes).toEqual(events);
      expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used, counted: 1, tenant: 1 });
      expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([used, used === 0 ? 0 : 1]);
      expect(rig.engine.listAttempts(id)).toMatchObject([{ result: result.kind, ended_at: rig.clock.now, late: 0 }]);
      rig.outbound.take();
      await rig.advance(DAY);
      expect(rig.outbound.sent).toEqual([]);
    },
  );

  test.each([
    ['rate_limit', 10 * SECOND],
    ['quota', MINUTE],
    ['paused', MINUTE],
    ['relay', MINUTE],
  ] as const)('put off (%s) leaves the message queued and its hold extended', async (retryClass, delay) => {
    expect(await attempt(rig, id, retryLater(retryClass))).toEqual({ applied: true, delay_ms: delay });
    expect(rig.message(id)).toMatchObject({ status: 'queued', status_reason: null });
    expect(rig.eventTypes).toEqual([]);
    expect(rig.quotaBooks).toEqual({ held: 2, holds: 1, used: 0, counted: 1, tenant: 1 });
    expect(rig.quotaStorage.sql.first('SELECT expires_at FROM holds')).toEqual({
      expires_at: rig.clock.now + delay + 10 * MINUTE,
    });
  });

  test('accepted tells who sent it and under which id', async () => {
    await attempt(rig, id, accepted({ rfc_message_id: 'wire@example.net' }));
    expect(rig.message(id)).toMatchObject({ provider_message_id: 'prov-1', rfc_message_id: 'wire@example.net' });
    expect(rig.eventData('message.sent')).toEqual([
      {
        message: expect.objectContaining({ id, status: 'submitted' }) as unknown,
        provider: 'cloudflare',
        provider_message_id: 'prov-1',
        sent_via_fallback: false,
      },
    ]);
  });

  test('accepted without an id is accepted (T7)', async () => {
    await attempt(rig, id, accepted({ provider_message_id: null }));
    expect(rig.message(id)).toMatchObject({ status: 'submitted', provider_message_id: null });
    expect(rig.quotaBooks.used).toBe(2);
  });

  test('accepted under an id seen before is accepted, and reports find the message sent to their recipient (T7)', async () => {
    await attempt(rig, id, accepted());
    const other = await rig.send({ body: { to: ['lee@example.net'] } });
    await attempt(rig, other.id, accepted());
    await rig.engine.applyEvent(report(rig, 'delivered', { recipient: KIM }));
    await rig.engine.applyEvent(report(rig, 'delivered', { recipient: 'lee@example.net' }));
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'delivered' });
    expect(rig.message(other.id).status).toBe('delivered');
  });

  test("rejected keeps the provider's words", async () => {
    await attempt(rig, id, REJECTED);
    expect(rig.message(id).deliveries?.[0]).toMatchObject({ smtp_response: 'E_VALIDATION_ERROR: invalid content' });
    expect(rig.eventData('message.rejected')).toEqual([
      { message_id: id, reason: 'provider_validation', detail: 'E_VALIDATION_ERROR: invalid content' },
    ]);
  });
});

describe('a record', () => {
  test('made twice changes nothing the second time (O2)', async () => {
    const run = new Run(rig, id);
    run.claim();
    await run.record(accepted());
    const before = rig.storage.dump();
    expect(await run.record(accepted())).toEqual({ applied: false, delay_ms: null });
    expect(await run.record(REJECTED)).toEqual({ applied: false, delay_ms: null });
    expect(rig.storage.dump()).toBe(before);
    expect(rig.quotaBooks.used).toBe(2);
  });

  test('whose answer was lost still has the consumer queue a message that was put off (O2)', async () => {
    const run = new Run(rig, id);
    run.claim();
    await run.record(retryLater('quota'));
    const again = await run.record(retryLater('quota'));
    expect(again.applied).toBe(false);
    expect(again.delay_ms).toBeGreaterThanOrEqual(MINUTE);
    expect(rig.meta(`backoff:${id}`)).toContain('"n":1');
  });

  test('that dies before its commit can be made again (O1)', async () => {
    const run = new Run(rig, id);
    run.claim();
    rig.dieAt('outcome.in_transaction');
    await expect(run.record(accepted())).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.message(id).status).toBe('queued');
    expect(await run.record(accepted())).toMatchObject({ applied: true });
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
  });

  test('that is never made leaves the message uncertain (O1)', async () => {
    new Run(rig, id).claim();
    await rig.advance(DAY);
    expect(rig.message(id).status).toBe('uncertain');
  });

  test('that dies after its commit is paid by the alarm (O4)', async () => {
    const run = new Run(rig, id);
    run.claim();
    rig.dieAt('outcome.committed');
    await expect(run.record(accepted())).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.quotaBooks).toMatchObject({ held: 2, used: 0 });
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
    await rig.advance(MINUTE);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
  });

  test('under a token or for a message that is not known changes nothing (O3)', async () => {
    const other = await rig.send();
    const run = new Run(rig, id);
    run.claim();
    const dump = (): string => rig.storage.dump() + rig.quotaStorage.dump();
    const before = dump();
    const strangers = [
      new Run(rig, id, 'unknown'),
      new Run(rig, other.id, run.token),
      new Run(rig, 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T', run.token),
    ];
    for (const stranger of strangers) {
      for (const result of [accepted(), REJECTED, TIMEOUT, retryLater('quota')]) {
        expect(await stranger.record(result)).toEqual({ applied: false, delay_ms: null });
        expect(dump()).toBe(before);
      }
    }
    expect(await run.record(accepted())).toEqual({ applied: true, delay_ms: null });
    expect([rig.message(id).status, rig.message(other.id).status]).toEqual(['submitted', 'queued']);
  });
});

describe('back-off', () => {
  test.each([
    ['rate_limit', [10, 20, 30, 40, 50, 60, 60]],
    ['quota', [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]],
  ] as const)('grows from one attempt to the next, %s (T1, T8)', async (retryClass, seconds) => {
    const delays: (number | null)[] = [];
    for (const _ of seconds) {
      const { delay_ms } = await attempt(rig, id, retryLater(retryClass));
      delays.push(delay_ms);
      rig.clock.now += delay_ms ?? 0;
    }
    expect(delays).toEqual(seconds.map((s) => s * SECOND));
  });

  test.each(['rate_limit', 'quota', 'paused', 'relay'] as const)(
    'ends with the day, %s: the message fails and its hold goes back (T8)',
    async (retryClass) => {
      const { received_at } = rig.message(id);
      let calls = 0;
      let last: number | null = 0;
      while (last !== null) {
        last = (await attempt(rig, id, retryLater(retryClass))).delay_ms;
        calls++;
        await rig.advance(last ?? 0);
      }
      expect(calls).toBe(retryClass === 'rate_limit' ? 1_443 : 29);
      expect(rig.clock.now).toBeLessThanOrEqual(Date.parse(received_at) + DAY);
      expect(rig.clock.now).toBeGreaterThan(Date.parse(received_at) + DAY - HOUR - MINUTE);
      expect(rig.message(id)).toMatchObject({ status: 'failed', status_reason: 'quota_exhausted' });
      expect(rig.statuses(id)).toEqual({ [JO]: 'failed', [KIM]: 'failed' });
      expect(rig.eventData('message.failed')).toEqual([{ message_id: id, reason: 'quota_exhausted' }]);
      expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 0, counted: 1, tenant: 1 });
      expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
    },
  );

  test('does not come back by the alarm before it is over (E7)', async () => {
    rig.outbound.take();
    const { delay_ms } = await attempt(rig, id, retryLater('quota'));
    await rig.advance((delay_ms ?? 0) + 5 * MINUTE - 1);
    expect(rig.outbound.take()).toEqual([]);
    await rig.advance(1);
    expect(rig.outbound.take()).toMatchObject([{ kind: 'send', message_id: id }]);
  });

  test('of more than a thousand attempts still frees the hold when the domain ends the rest', async () => {
    for (let n = 1; n <= 1_000; n++) await attempt(rig, id, retryLater('rate_limit'));
    await attempt(rig, id, accepted({ deferred: [KIM] }));
    expect(new Run(rig, id).begin(facts({ state: 'removed' }))).toEqual({ kind: 'ended' });
    await rig.advance(MINUTE);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 1, counted: 1, tenant: 1 });
  });

  test('with a refusal for good keeps only the others waiting', async () => {
    await attempt(rig, id, retryLater('relay', [refusal(KIM)]));
    expect(rig.statuses(id)).toEqual({ [JO]: 'queued', [KIM]: 'rejected' });
    expect(rig.message(id)).toMatchObject({ status: 'queued' });
    expect(rig.message(id).deliveries?.[1]).toMatchObject({
      smtp_code: '550',
      enhanced_code: '5.1.1',
      smtp_response: '550 5.1.1 no such user',
    });
    const run = new Run(rig, id);
    expect(run.claim()).toMatchObject({ to: [JO] });
    await run.record(accepted());
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 1, counted: 1, tenant: 1 });
  });

  test('with everyone refused for good is a rejection', async () => {
    expect(await attempt(rig, id, retryLater('relay', [refusal(JO), refusal(KIM)]))).toMatchObject({ delay_ms: null });
    expect(rig.message(id)).toMatchObject({ status: 'rejected', status_reason: 'provider_validation' });
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0, used: 0 });
  });
});
