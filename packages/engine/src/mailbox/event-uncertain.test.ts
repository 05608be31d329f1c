import type { MessageId } from '@pmail/core/ids.ts';
import { expect, test } from 'vitest';
import { JO, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, Run, report, TIMEOUT } from './transport.fixture.ts';

/** Every way into doubt says what to do next, and every one of them ends by a report that names the message. */

const WAYS: Record<string, (rig: MailboxRig) => Promise<MessageId>> = {
  'a call without an answer': async (rig) => {
    const { id } = await rig.send();
    await attempt(rig, id, TIMEOUT);
    return id;
  },
  'a claim that nobody reports on': async (rig) => {
    const { id } = await rig.send();
    new Run(rig, id).claim();
    await rig.advance(6 * MINUTE);
    return id;
  },
  'a stale claim that the next consumer finds': async (rig) => {
    const { id } = await rig.send();
    new Run(rig, id).claim();
    rig.skip(6 * MINUTE);
    expect(new Run(rig, id).begin()).toEqual({ kind: 'uncertain' });
    return id;
  },
  'the second call of a partly accepted send': async (rig) => {
    const { id } = await rig.send({ body: { to: ['kim@example.net', JO] } });
    await attempt(rig, id, accepted({ provider_message_id: 'first', deferred: [JO] }));
    await attempt(rig, id, TIMEOUT);
    return id;
  },
  'a mailbox that was put back': async (rig) => {
    const restore = rig.storage.pointInTime();
    const { id } = await rig.send();
    await attempt(rig, id, accepted());
    restore();
    rig.restart();
    let progress = await rig.engine.rebuildLedger(true);
    while (!progress.complete) progress = await rig.engine.rebuildLedger(false);
    return id;
  },
};

test.each(Object.keys(WAYS))('%s: what to do is told, and a report that names the message ends it', async (way) => {
  const rig = new MailboxRig();
  const id = await WAYS[way]?.(rig);
  if (id === undefined) throw new Error('no such way');
  expect(rig.message(id).status).toBe('uncertain');
  const [told, ...others] = rig.eventData('message.uncertain');
  expect(others).toEqual([]);
  expect(told).toMatchObject({
    message_id: id,
    reason: rig.message(id).status_reason,
    fix: expect.stringMatching(/wait for a delivery event; then call resolve with outcome sent or not_sent/) as string,
  });
  // Whoever reads the message is told as well.
  expect(rig.message(id).fix).toBe(told?.['fix']);
  const event = report(rig, 'delivered', { provider_message_id: 'late', our_message_id: id, subject: null });
  expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'reconciled', message_id: id });
  expect(rig.statuses(id)[JO]).toBe('delivered');
  expect(rig.message(id)).toMatchObject({ status_reason: null });
  const settled = Object.values(rig.statuses(id)).every((status) => status !== 'uncertain');
  expect(rig.message(id).fix === null).toBe(settled);
});
