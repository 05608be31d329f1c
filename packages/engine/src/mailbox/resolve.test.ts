import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, REJECTED, report, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
  await attempt(rig, id, TIMEOUT);
});

describe('a person says that it', () => {
  test('was sent: submitted, told with no id, and counted as accepted', async () => {
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({
      ok: true,
      message: { id, status: 'submitted', status_reason: null, provider_message_id: null },
    });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'submitted' });
    expect(rig.eventData('message.sent')).toMatchObject([{ message: { id }, provider_message_id: null }]);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([2, 1]);
  });

  test('was not sent: failed, told with the reason, and nothing counted', async () => {
    expect(await rig.engine.resolve(id, 'not_sent')).toMatchObject({
      ok: true,
      message: { status: 'failed', status_reason: 'resolved_not_sent' },
    });
    expect(rig.statuses(id)).toEqual({ [JO]: 'failed', [KIM]: 'failed' });
    expect(rig.eventData('message.failed')).toEqual([{ message_id: id, reason: 'resolved_not_sent' }]);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 0, counted: 1, tenant: 1 });
  });

  test.each(['sent', 'not_sent'] as const)('was %s, twice: the second is refused', async (outcome) => {
    await rig.engine.resolve(id, outcome);
    const before = rig.storage.dump();
    const status = outcome === 'sent' ? 'submitted' : 'failed';
    for (const again of ['sent', 'not_sent'] as const) {
      expect(await rig.engine.resolve(id, again)).toEqual({ ok: false, code: 'not_uncertain', details: { status } });
    }
    expect(rig.storage.dump()).toBe(before);
  });

  test.each([
    ['queued', null],
    ['submitted', accepted()],
    ['rejected', REJECTED],
  ] as const)('of something, when it is %s: refused', async (status, result) => {
    const other = await rig.send();
    if (result !== null) await attempt(rig, other.id, result);
    expect(await rig.engine.resolve(other.id, 'sent')).toMatchObject({ code: 'not_uncertain', details: { status } });
  });

  test('of a canceled message, whose recipients keep what they had: refused', async () => {
    const other = await rig.send();
    await rig.engine.cancel(other.id);
    expect(await rig.engine.resolve(other.id, 'not_sent')).toMatchObject({ code: 'not_uncertain' });
  });

  test('of a message that is not there: not found', async () => {
    expect(await rig.engine.resolve('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T', 'sent')).toMatchObject({
      code: 'message_not_found',
    });
  });

  test('and the process dies: either nothing or all of it has happened', async () => {
    rig.dieAt('resolve.in_transaction');
    await expect(rig.engine.resolve(id, 'sent')).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.message(id).status).toBe('uncertain');
    rig.dieAt('resolve.committed');
    await expect(rig.engine.resolve(id, 'sent')).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.message(id).status).toBe('submitted');
    await rig.advance(MINUTE);
    expect(rig.quotaBooks.used).toBe(2);
  });
});

describe('and a report', () => {
  test('that comes after "sent" moves it on (O5)', async () => {
    await rig.engine.resolve(id, 'sent');
    // Without the id nobody knows which message it is about, even with the same subject.
    expect(await rig.engine.applyEvent(report(rig, 'delivered'))).toMatchObject({ kind: 'not_found' });
    expect(rig.message(id).status).toBe('submitted');
  });

  test('that comes before leaves the person only what is still uncertain (O5)', async () => {
    await rig.engine.applyEvent(report(rig, 'delivered'));
    const before = rig.quotaBooks.used;
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ ok: true, message: { status: 'submitted' } });
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'submitted' });
    expect([before, rig.quotaBooks.used]).toEqual([1, 2]);
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([2, 1]);
  });

  test('at the same time: whoever is second finds what the first left (O5)', async () => {
    const both = [rig.engine.resolve(id, 'not_sent'), rig.engine.applyEvent(report(rig, 'delivered'))] as const;
    const [resolved, applied] = await Promise.all(both);
    expect(resolved.ok).toBe(true);
    expect(applied.kind).toBe('not_found');
    expect(rig.message(id).status).toBe('failed');
    expect(rig.quotaBooks.used).toBe(0);
  });
});

describe('a recipient that is uncertain in a message that has moved on', () => {
  beforeEach(async () => {
    ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
    await attempt(rig, id, accepted({ provider_message_id: 'prov-2', deferred: [KIM] }));
    await attempt(rig, id, TIMEOUT);
    const jo = { provider_message_id: 'prov-2' };
    await rig.engine.applyEvent(report(rig, 'delivered', jo));
    await rig.engine.applyEvent(report(rig, 'complained', jo));
    expect(rig.message(id).status).toBe('complained');
    expect(rig.statuses(id)).toEqual({ [JO]: 'complained', [KIM]: 'uncertain' });
  });

  test('can still be resolved as sent', async () => {
    const before = rig.quotaBooks.used;
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ ok: true, message: { status: 'complained' } });
    expect(rig.statuses(id)).toEqual({ [JO]: 'complained', [KIM]: 'submitted' });
    expect(rig.quotaBooks.used - before).toBe(1);
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ code: 'not_uncertain' });
  });

  test('can still be resolved as not sent, which does not fail the message', async () => {
    expect(await rig.engine.resolve(id, 'not_sent')).toMatchObject({
      ok: true,
      message: { status: 'complained', status_reason: null },
    });
    expect(rig.statuses(id)).toEqual({ [JO]: 'complained', [KIM]: 'failed' });
    expect(rig.eventTypes).not.toContain('message.failed');
  });
});
