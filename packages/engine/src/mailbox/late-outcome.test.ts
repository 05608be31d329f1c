import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, REJECTED, Run, refusal, report, retryLater, TIMEOUT } from './transport.fixture.ts';

/** The consumer was only slow: its result comes after its claim has gone stale (C6). */

let rig: MailboxRig;
let id: MessageId;
let run: Run;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
  run = new Run(rig, id);
  run.claim();
  await rig.advance(6 * MINUTE);
  expect(rig.message(id).status).toBe('uncertain');
  rig.outbound.take();
});

/** Whatever came late, nothing is sent again. */
async function expectNoSecondCall(): Promise<void> {
  await rig.advance(DAY);
  expect(rig.outbound.sent).toEqual([]);
  expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
  expect(rig.engine.listAttempts(id)).toHaveLength(1);
}

describe('a late result', () => {
  test('of acceptance settles the message (C6)', async () => {
    expect(await run.record(accepted())).toEqual({ applied: false, delay_ms: null });
    expect(rig.message(id)).toMatchObject({
      status: 'submitted',
      status_reason: null,
      provider_message_id: 'prov-1',
      flags: ['reconciled'],
    });
    expect(rig.eventTypes).toEqual(['message.uncertain', 'message.reconciled', 'message.sent']);
    expect(rig.eventData('message.reconciled')).toEqual([{ message_id: id, status: 'submitted' }]);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([2, 1]);
    expect(rig.engine.listAttempts(id)).toMatchObject([{ result: 'accepted', late: 1 }]);
    await rig.engine.applyEvent(report(rig, 'delivered'));
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'submitted' });
    await expectNoSecondCall();
  });

  test('of partial acceptance settles those it speaks of; who was put off stays uncertain (C6, T4)', async () => {
    const { id: three } = await rig.send({ body: { to: [JO, KIM, 'lee@example.net'] } });
    const slow = new Run(rig, three);
    slow.claim();
    await rig.advance(6 * MINUTE);
    const before = rig.quotaBooks.used;
    await slow.record(accepted({ refused: [refusal(KIM)], deferred: ['lee@example.net'] }));
    expect(rig.statuses(three)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', 'lee@example.net': 'uncertain' });
    expect(rig.message(three).status).toBe('submitted');
    expect(rig.quotaBooks.used - before).toBe(1);
    expect(new Run(rig, three).begin()).toEqual({ kind: 'not_queued' });
    expect(await rig.engine.resolve(three, 'not_sent')).toMatchObject({ ok: true });
    expect(rig.statuses(three)['lee@example.net']).toBe('failed');
  });

  test('of rejection settles the message as rejected (C6)', async () => {
    await run.record(REJECTED);
    expect(rig.message(id)).toMatchObject({ status: 'rejected', status_reason: 'provider_validation' });
    expect(rig.eventTypes).toEqual(['message.uncertain', 'message.reconciled', 'message.rejected']);
    expect(rig.quotaBooks.used).toBe(0);
    await expectNoSecondCall();
  });

  test.each([
    ['to be tried later', retryLater('rate_limit')],
    ['unknown', TIMEOUT],
  ])('%s is only evidence: the message stays uncertain and is not sent again (C6)', async (_what, result) => {
    expect(await run.record(result)).toEqual({ applied: false, delay_ms: null });
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost' });
    expect(rig.eventTypes).toEqual(['message.uncertain']);
    expect(rig.engine.listAttempts(id)).toMatchObject([{ result: result.kind, late: 1 }]);
    await expectNoSecondCall();
  });

  test('of rejection, of a message whose other recipient was given up before, is told as its failure (C6, I9)', async () => {
    const { id: two } = await rig.send({ body: { to: [JO, KIM] } });
    await attempt(rig, two, accepted({ deferred: [KIM], provider_message_id: 'prov-two' }));
    await rig.engine.applyEvent(report(rig, 'failed', { provider_message_id: 'prov-two' }));
    await rig.advance(10 * MINUTE);
    const slow = new Run(rig, two);
    slow.claim();
    await rig.advance(6 * MINUTE);
    expect(rig.statuses(two)).toEqual({ [JO]: 'failed', [KIM]: 'uncertain' });
    await slow.record(REJECTED);
    expect(rig.message(two)).toMatchObject({ status: 'failed', status_reason: 'provider_validation' });
    expect(rig.eventData('message.failed')).toEqual([{ message_id: two, reason: 'provider_validation' }]);
  });

  test('to be tried later, with refusals, ends those that were refused', async () => {
    await run.record(retryLater('relay', [refusal(KIM)]));
    expect(rig.statuses(id)).toEqual({ [JO]: 'uncertain', [KIM]: 'rejected' });
    expect(rig.message(id).status).toBe('uncertain');
    await expectNoSecondCall();
  });

  test('recorded twice settles once', async () => {
    await run.record(accepted());
    const before = rig.storage.dump();
    expect(await run.record(accepted())).toEqual({ applied: false, delay_ms: null });
    expect(rig.storage.dump()).toBe(before);
    expect(rig.quotaBooks.used).toBe(2);
  });
});

describe('a late result after somebody else has spoken', () => {
  test.each([
    ['sent', 'submitted', 2],
    ['not_sent', 'failed', 0],
  ] as const)('a person, %s: it changes nothing (O5)', async (outcome, status, used) => {
    await rig.engine.resolve(id, outcome);
    const events = rig.eventTypes;
    await run.record(accepted());
    expect(rig.message(id).status).toBe(status);
    expect(rig.eventTypes).toEqual(events);
    expect(rig.quotaBooks.used).toBe(used);
    expect(rig.engine.listAttempts(id)).toMatchObject([{ result: 'accepted', late: 1 }]);
    await expectNoSecondCall();
  });

  test.each([
    ['sent', 'prov-1', 'delivered'],
    ['not_sent', null, 'failed'],
  ] as const)(
    'a person, %s: the id of a late acceptance is %s, and a report about it leaves %s (O5)',
    async (outcome, known, status) => {
      await rig.engine.resolve(id, outcome);
      await run.record(accepted());
      expect(rig.message(id).provider_message_id).toBe(known);
      for (const recipient of [JO, KIM]) await rig.engine.applyEvent(report(rig, 'delivered', { recipient }));
      expect(rig.message(id).status).toBe(status);
      expect(rig.quotaBooks.used).toBe(outcome === 'sent' ? 2 : 0);
    },
  );

  test('a report: an acceptance settles the others', async () => {
    await rig.engine.applyEvent(report(rig, 'delivered'));
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'uncertain' });
    await run.record(accepted());
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'submitted' });
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([2, 1]);
  });

  test('a report: a rejection contradicts it and is only evidence', async () => {
    await rig.engine.applyEvent(report(rig, 'delivered'));
    await run.record(REJECTED);
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'uncertain' });
    expect(rig.engine.listAttempts(id)).toMatchObject([{ result: 'rejected', late: 1 }]);
  });
});

test('a late result finds the mailbox idle: what it leaves behind is in the registry of work', async () => {
  await rig.advance(MINUTE);
  expect(await rig.engine.poke()).toEqual({ work: false });
  expect(rig.registry.size).toBe(0);
  rig.applies.failNext();
  await run.record(accepted());
  expect(rig.registry.size).toBe(1);
  // The platform has lost the alarm: the cron's poke is what brings the rest about.
  rig.skip(5 * MINUTE);
  expect(await rig.engine.poke()).toEqual({ work: true });
  await rig.advance(MINUTE);
  expect(rig.quotaBooks.used).toBe(2);
  expect(rig.dispatched.map(({ type }) => type)).toContain('message.sent');
});
