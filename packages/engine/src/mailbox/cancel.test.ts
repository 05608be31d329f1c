import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, DAY, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, REJECTED, Run, refusal, retryLater, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
});

const FREE = { held: 0, holds: 0, used: 0, counted: 0, tenant: 0 };

/** Nothing about the message waits for anything any more. */
function expectForgotten(): void {
  for (const key of [`dispatch:${id}`, `claim:${id}`, `backoff:${id}`]) expect(rig.meta(key)).toBeUndefined();
  expect(rig.engine.sendState(id)).toBe('canceled');
  expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
}

describe('a person cancels', () => {
  test('what is queued: it ends, tells of it, and gives the day and the hold back', async () => {
    const answer = await rig.engine.cancel(id);
    expect(answer).toMatchObject({ ok: true, message: { id, status: 'canceled', status_reason: null } });
    expect(rig.eventData('message.canceled')).toEqual([{ message_id: id }]);
    expect(rig.quotaBooks).toEqual(FREE);
    // The message's status is what counts; its recipients keep theirs (R23).
    expect(rig.statuses(id)).toEqual({ [JO]: 'queued', [KIM]: 'queued' });
    expectForgotten();
    rig.outbound.take();
    await rig.advance(DAY);
    expect(rig.outbound.sent).toEqual([]);
  });

  test('what waits out a back-off', async () => {
    await attempt(rig, id, retryLater('quota'));
    expect(await rig.engine.cancel(id)).toMatchObject({ ok: true });
    expect(rig.quotaBooks).toEqual(FREE);
    expectForgotten();
  });

  test('what was refused for one and waits for the other: nobody has got it', async () => {
    await attempt(rig, id, retryLater('relay', [refusal(KIM)]));
    expect(await rig.engine.cancel(id)).toMatchObject({ ok: true, message: { status: 'canceled' } });
    expect(rig.statuses(id)).toEqual({ [JO]: 'queued', [KIM]: 'rejected' });
    expect(rig.quotaBooks).toEqual(FREE);
    expectForgotten();
  });

  test('what one has got and another waits for: refused', async () => {
    await attempt(rig, id, accepted({ deferred: [KIM] }));
    expect(await rig.engine.cancel(id)).toMatchObject({ ok: false, code: 'not_cancelable' });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'queued' });
  });

  test('twice: the second is refused, and nothing is given back twice', async () => {
    await rig.send();
    await rig.engine.cancel(id);
    expect(await rig.engine.cancel(id)).toEqual({
      ok: false,
      code: 'not_cancelable',
      details: { status: 'canceled' },
    });
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
    expect(rig.eventTypes).toEqual(['message.canceled']);
  });

  test('just before a consumer claims: the consumer finds nothing to send, and nothing was tried (S14)', async () => {
    expect(await rig.engine.cancel(id)).toMatchObject({ ok: true, message: { id, status: 'canceled' } });
    const before = rig.storage.dump();
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
    expect(rig.engine.listAttempts(id)).toEqual([]);
    expect(rig.storage.dump()).toBe(before);
  });

  test('what is claimed: refused, and the send goes on (S14)', async () => {
    const run = new Run(rig, id);
    expect(run.begin()).toMatchObject({ kind: 'claimed', send: { to: [JO, KIM] } });
    const before = rig.storage.dump();
    expect(await rig.engine.cancel(id)).toEqual({
      ok: false,
      code: 'not_cancelable',
      details: { status: 'queued' },
    });
    expect(rig.storage.dump()).toBe(before);
    await run.record(accepted());
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.engine.listAttempts(id)).toMatchObject([{ result: 'accepted', late: 0 }]);
    expect(rig.eventTypes).toEqual(['message.sent']);
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
  });

  test('while a consumer claims: the claim has it, as a cancel looks only once the mailbox is noted as busy (S14)', async () => {
    const canceling = rig.engine.cancel(id);
    expect(new Run(rig, id).begin()).toMatchObject({ kind: 'claimed' });
    expect(await canceling).toMatchObject({ ok: false, code: 'not_cancelable', details: { status: 'queued' } });
    expect(rig.engine.listAttempts(id)).toHaveLength(1);
    expect(rig.eventTypes).toEqual([]);
  });

  test.each([
    ['submitted', accepted()],
    ['rejected', REJECTED],
    ['uncertain', TIMEOUT],
    ['queued', accepted({ deferred: [KIM] })],
  ] as const)('what is %s already: refused', async (status, result) => {
    await attempt(rig, id, result);
    const before = rig.storage.dump();
    expect(await rig.engine.cancel(id)).toMatchObject({ code: 'not_cancelable', details: { status } });
    expect(rig.storage.dump()).toBe(before);
  });

  test('what is not there, or arrived: not found', async () => {
    expect(await rig.engine.cancel('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T')).toMatchObject({ code: 'message_not_found' });
    rig.sql.run("UPDATE messages SET direction = 'inbound'");
    expect(await rig.engine.cancel(id)).toMatchObject({ code: 'message_not_found' });
  });

  test('and the process dies: either nothing or all of it has happened', async () => {
    rig.dieAt('cancel.in_transaction');
    await expect(rig.engine.cancel(id)).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.message(id).status).toBe('queued');
    rig.dieAt('cancel.committed');
    await expect(rig.engine.cancel(id)).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.message(id).status).toBe('canceled');
    expect(rig.quotaBooks).toMatchObject({ counted: 1 });
    await rig.advance(MINUTE);
    expect(rig.quotaBooks).toEqual(FREE);
  });

  test('what has some filtered recipients', async () => {
    const other = await rig.send({ body: { to: [JO, KIM] }, directory: { send_block: [KIM] } });
    expect(await rig.engine.cancel(other.id)).toMatchObject({ ok: true });
  });
});

describe('the service stops', () => {
  test('what is queued: canceled, and told so again to whoever asks again (C9)', async () => {
    expect(await rig.engine.stopSend(id, 'identity_paused')).toEqual({ kind: 'canceled' });
    expect(await rig.engine.stopSend(id, 'identity_paused')).toEqual({ kind: 'canceled' });
    expect(rig.message(id).status).toBe('canceled');
    expect(rig.eventTypes).toEqual(['message.canceled']);
    expect(rig.quotaBooks).toEqual(FREE);
    expectForgotten();
  });

  test('what a person has canceled: nothing (C9)', async () => {
    await rig.engine.cancel(id);
    expect(await rig.engine.stopSend(id, 'identity_paused')).toEqual({ kind: 'nothing' });
  });

  test('what is claimed, ended or unknown: nothing (C9)', async () => {
    const run = new Run(rig, id);
    run.claim();
    expect(await rig.engine.stopSend(id, 'identity_paused')).toEqual({ kind: 'nothing' });
    await run.record(accepted());
    expect(await rig.engine.stopSend(id, 'identity_paused')).toEqual({ kind: 'nothing' });
    expect(await rig.engine.stopSend('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T', 'x')).toEqual({ kind: 'nothing' });
    expect(rig.message(id).status).toBe('submitted');
  });

  test('what was partly handed over: the rest waits, and fails with its day (C9)', async () => {
    await attempt(rig, id, accepted({ deferred: [KIM] }));
    expect(await rig.engine.stopSend(id, 'tenant_suspended')).toEqual({ kind: 'deferred', delay_ms: 2 * MINUTE });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'queued' });
    let answer = await rig.engine.stopSend(id, 'tenant_suspended');
    for (let i = 0; answer.kind === 'deferred' && i < 100; i++) {
      await rig.advance(answer.delay_ms);
      answer = await rig.engine.stopSend(id, 'tenant_suspended');
    }
    expect(answer).toEqual({ kind: 'nothing' });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'failed' });
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0 });
  });

  test('what was partly handed over and may go on after all: it goes on (C9)', async () => {
    await attempt(rig, id, accepted({ deferred: [KIM] }));
    await rig.engine.stopSend(id, 'tenant_suspended');
    await attempt(rig, id, accepted());
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'submitted' });
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
  });
});
