import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, JO, KIM, LEE, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, facts, REJECTED, Run, refusal, report, retryLater, TIMEOUT } from './transport.fixture.ts';

/** A relay that takes a message for some recipients, refuses others and puts others off (T4). */

const RELAY = facts({ transport: 'smtp' });
const PARTIAL = accepted({ provider_message_id: 'smtp:relay:1', refused: [refusal(KIM)], deferred: [LEE] });

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO], cc: [KIM], bcc: [LEE] } }));
});

async function first(): Promise<void> {
  const run = new Run(rig, id);
  run.claim(RELAY);
  expect(await run.record(PARTIAL)).toEqual({ applied: true, delay_ms: MINUTE });
}

const sentEvents = (): number => rig.eventTypes.filter((type) => type === 'message.sent').length;

describe('after the first call', () => {
  test('each recipient has what the relay said, and the message waits for the rest (T4)', async () => {
    await first();
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', [LEE]: 'queued' });
    expect(rig.message(id)).toMatchObject({ status: 'queued', provider_message_id: 'smtp:relay:1' });
    expect(rig.eventTypes).toEqual([]);
    expect(rig.meta(`backoff:${id}`)).toContain('"n":1');
  });

  test('the accepted one is used, the one that waits is still held until ten minutes after its retry (T4)', async () => {
    await first();
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 1, counted: 1, tenant: 1 });
    expect(rig.quotaStorage.sql.first('SELECT expires_at FROM holds')).toEqual({
      expires_at: rig.clock.now + 11 * MINUTE,
    });
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([1, 1]);
  });

  test('the second goes only to the one that waits (T4)', async () => {
    await first();
    const run = new Run(rig, id);
    expect(run.claim(RELAY)).toMatchObject({ to: [], cc: [], bcc: [LEE] });
    await run.record(accepted({ provider_message_id: 'smtp:relay:2' }));
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', [LEE]: 'submitted' });
    expect(rig.message(id).status).toBe('submitted');
    expect(sentEvents()).toBe(1);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
    // One message, whatever the number of calls.
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([2, 1]);
  });

  test('it cannot be canceled any more', async () => {
    await first();
    expect(await rig.engine.cancel(id)).toMatchObject({ ok: false, code: 'not_cancelable' });
  });
});

describe('the ids of both calls', () => {
  test('lead to the message; the first is the one that is shown (T7)', async () => {
    await first();
    await attempt(rig, id, accepted({ provider_message_id: 'smtp:relay:2' }));
    expect(rig.message(id).provider_message_id).toBe('smtp:relay:1');
    await rig.engine.applyEvent(report(rig, 'delivered', { provider_message_id: 'smtp:relay:2', recipient: LEE }));
    await rig.engine.applyEvent(report(rig, 'delivered', { provider_message_id: 'smtp:relay:1' }));
    expect(rig.statuses(id)).toMatchObject({ [JO]: 'delivered', [LEE]: 'delivered' });
  });

  test('may be the same', async () => {
    await first();
    await attempt(rig, id, accepted({ provider_message_id: 'smtp:relay:1' }));
    expect(rig.rows('message_aliases')).toBe(0);
    expect(rig.message(id).provider_message_id).toBe('smtp:relay:1');
  });

  test('may be one, or none', async () => {
    const run = new Run(rig, id);
    run.claim();
    await run.record(accepted({ provider_message_id: null, deferred: [LEE] }));
    await attempt(rig, id, accepted({ provider_message_id: 'prov-2' }));
    expect(rig.message(id).provider_message_id).toBe('prov-2');
  });
});

describe('the rest ends', () => {
  test.each([
    ['refused', REJECTED, { [LEE]: 'rejected' }, 'submitted'],
    ['refused alone', retryLater('relay', [refusal(LEE)]), { [LEE]: 'rejected' }, 'submitted'],
    ['unknown', TIMEOUT, { [LEE]: 'uncertain' }, 'uncertain'],
  ] as const)(
    '%s: the others keep what they have, and the message has been sent',
    async (_how, result, rest, status) => {
      await first();
      await attempt(rig, id, result);
      expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', ...rest });
      expect(rig.message(id).status).toBe(status);
      expect(sentEvents()).toBe(1);
      expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 1, counted: 1, tenant: 1 });
    },
  );

  test('too late: it fails after a day, and the message has been sent', async () => {
    await first();
    let delay: number | null = MINUTE;
    while (delay !== null) {
      await rig.advance(delay);
      ({ delay_ms: delay } = await attempt(rig, id, retryLater('relay')));
    }
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', [LEE]: 'failed' });
    expect(rig.message(id)).toMatchObject({ status: 'submitted', status_reason: null });
    expect(rig.eventTypes).toEqual(['message.sent']);
    // What was used went to zero with the month, which ended on the way.
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0, counted: 1, tenant: 1 });
  });

  test('put off again: nothing but the wait changes', async () => {
    await first();
    expect(await attempt(rig, id, retryLater('relay'))).toEqual({ applied: true, delay_ms: 2 * MINUTE });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', [LEE]: 'queued' });
    expect(rig.quotaBooks).toMatchObject({ held: 1, used: 1 });
  });
});

describe('a report while one still waits', () => {
  test('changes its own recipient, and the message goes on waiting', async () => {
    await first();
    const jo = { provider_message_id: 'smtp:relay:1' };
    await rig.engine.applyEvent(report(rig, 'delivered', jo));
    expect(rig.statuses(id)).toMatchObject({ [JO]: 'delivered', [LEE]: 'queued' });
    expect(rig.message(id).status).toBe('queued');
    await attempt(rig, id, accepted());
    expect(rig.statuses(id)).toMatchObject({ [JO]: 'delivered', [LEE]: 'submitted' });
    expect(rig.message(id).status).toBe('submitted');
  });

  test('that complains shows at once, and does not lose the one that waits (V5)', async () => {
    await first();
    await rig.engine.applyEvent(report(rig, 'complained', { provider_message_id: 'smtp:relay:1' }));
    expect(rig.message(id).status).toBe('complained');
    expect(rig.engine.sendState(id)).toBe('open');
    rig.outbound.take();
    await rig.advance(6 * MINUTE);
    expect(rig.outbound.take()).toMatchObject([{ message_id: id }]);
    const run = new Run(rig, id);
    expect(run.claim(RELAY)).toMatchObject({ bcc: [LEE] });
    await run.record(accepted());
    expect(rig.statuses(id)).toEqual({ [JO]: 'complained', [KIM]: 'rejected', [LEE]: 'submitted' });
    expect(rig.message(id).status).toBe('complained');
    expect(sentEvents()).toBe(1);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
  });

  test('that complains, and a claim that goes stale: the one that waited is uncertain and can be resolved (V5, C5)', async () => {
    await first();
    await rig.engine.applyEvent(report(rig, 'complained', { provider_message_id: 'smtp:relay:1' }));
    new Run(rig, id).claim(RELAY);
    await rig.advance(6 * MINUTE);
    expect(rig.statuses(id)).toMatchObject({ [JO]: 'complained', [LEE]: 'uncertain' });
    expect(rig.message(id).status).toBe('complained');
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ ok: true });
    expect(rig.statuses(id)).toMatchObject({ [JO]: 'complained', [LEE]: 'submitted' });
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
  });

  test('about the one that is being sent comes before the record: it is not undone (V3)', async () => {
    await first();
    const run = new Run(rig, id);
    run.claim(RELAY);
    await rig.engine.applyEvent(
      report(rig, 'delivered', { provider_message_id: 'smtp:relay:1', recipient: LEE, source: 'dsn' }),
    );
    await run.record(accepted({ provider_message_id: 'smtp:relay:1' }));
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', [LEE]: 'delivered' });
    expect(rig.message(id).status).toBe('submitted');
  });

  test('about the one that is being sent, and the record never comes: nothing is left uncertain (V3, C5)', async () => {
    await first();
    new Run(rig, id).claim(RELAY);
    await rig.engine.applyEvent(
      report(rig, 'delivered', { provider_message_id: 'smtp:relay:1', recipient: LEE, source: 'dsn' }),
    );
    await rig.advance(DAY);
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'rejected', [LEE]: 'delivered' });
    expect(rig.message(id)).toMatchObject({ status: 'submitted', status_reason: null });
    expect(rig.eventTypes).not.toContain('message.uncertain');
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ code: 'not_uncertain' });
  });
});
