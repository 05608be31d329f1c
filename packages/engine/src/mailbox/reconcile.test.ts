import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, report, TIMEOUT } from './transport.fixture.ts';

/** An uncertain send and a report whose id nobody knows (T5). */

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
  await attempt(rig, id, TIMEOUT);
});

/** Reports about ids that no message has. */
const unknown = (changes: Parameters<typeof report>[2] = {}): ReturnType<typeof report> =>
  report(rig, 'delivered', { provider_message_id: 'prov-new', ...changes });

describe('exactly one candidate', () => {
  test('is the message: it gets the id, the flag and the report (T5)', async () => {
    expect(await rig.engine.applyEvent(unknown())).toEqual({
      kind: 'reconciled',
      message_id: id,
      outcome: 'delivered',
      suppress: null,
    });
    // Everyone who is still open is still uncertain, so the message is.
    expect(rig.message(id)).toMatchObject({
      status: 'uncertain',
      status_reason: 'transport_timeout',
      provider_message_id: 'prov-new',
      flags: ['reconciled'],
    });
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'uncertain' });
    expect(rig.eventTypes).toEqual(['message.uncertain', 'message.reconciled', 'message.delivered']);
    expect(rig.eventData('message.reconciled')).toEqual([{ message_id: id, status: 'uncertain' }]);
  });

  test('is found by its other recipients through the id', async () => {
    await rig.engine.applyEvent(unknown());
    expect(await rig.engine.applyEvent(unknown({ recipient: KIM, subject: null }))).toMatchObject({ kind: 'applied' });
    expect(rig.message(id).status).toBe('delivered');
    expect(rig.eventTypes.filter((type) => type === 'message.reconciled')).toHaveLength(1);
  });

  test('alone on a message of one recipient ends it', async () => {
    const { id: single } = await rig.send({ body: { subject: 'Another' } });
    await attempt(rig, single, TIMEOUT);
    await rig.engine.applyEvent(unknown({ subject: 'Another' }));
    expect(rig.message(single).status).toBe('delivered');
    expect(rig.eventData('message.reconciled')).toEqual([{ message_id: single, status: 'delivered' }]);
  });

  test.each([
    [-30 * MINUTE, 'not_found'],
    [0, 'reconciled'],
    [-5 * MINUTE - 1, 'not_found'],
    [-5 * MINUTE, 'reconciled'],
    [30 * MINUTE, 'reconciled'],
    [30 * MINUTE + 1, 'not_found'],
  ])('counts within its time: a report %d ms after it became uncertain is %s', async (after, kind) => {
    const occurred_at = rig.clock.now + after;
    rig.clock.now += DAY;
    expect(await rig.engine.applyEvent(unknown({ occurred_at }))).toMatchObject({ kind });
  });
});

describe('no candidate', () => {
  test.each([
    ['another sender', { sender: 'other@acme.example.com' }],
    ['another recipient', { recipient: 'lee@example.net' }],
    ['another subject', { subject: 'your booking' }],
    ['no subject, as in complaints', { subject: null }],
    ['no id', { provider_message_id: null }],
  ])('because of %s: not found, and nothing changes', async (_what, changes) => {
    const before = rig.storage.dump();
    expect(await rig.engine.applyEvent(unknown(changes))).toEqual({ kind: 'not_found', ambiguous: false });
    expect(rig.storage.dump()).toBe(before);
  });

  test('because the message has an id, or is not uncertain any more', async () => {
    await rig.engine.resolve(id, 'not_sent');
    expect(await rig.engine.applyEvent(unknown())).toMatchObject({ kind: 'not_found' });
    const { id: other } = await rig.send({ body: { to: [JO, KIM] } });
    await attempt(rig, other, accepted({ provider_message_id: 'prov-1', deferred: [KIM] }));
    await attempt(rig, other, TIMEOUT);
    expect(rig.message(other).status).toBe('uncertain');
    expect(await rig.engine.applyEvent(unknown({ recipient: KIM }))).toMatchObject({ kind: 'not_found' });
  });
});

describe('several candidates', () => {
  test('are ambiguous: nothing changes, and one that is left alone counts again', async () => {
    const { id: twin } = await rig.send();
    await attempt(rig, twin, TIMEOUT);
    const before = rig.storage.dump();
    expect(await rig.engine.applyEvent(unknown())).toEqual({ kind: 'not_found', ambiguous: true });
    expect(rig.storage.dump()).toBe(before);
    // KIM was only in one of them.
    expect(await rig.engine.applyEvent(unknown({ recipient: KIM }))).toMatchObject({
      kind: 'reconciled',
      message_id: id,
    });
    expect(await rig.engine.applyEvent(unknown({ provider_message_id: 'prov-twin' }))).toMatchObject({
      kind: 'reconciled',
      message_id: twin,
    });
  });

  test('that the time tells apart are none', async () => {
    const first = rig.clock.now;
    rig.clock.now += DAY;
    const { id: later } = await rig.send();
    await attempt(rig, later, TIMEOUT);
    expect(await rig.engine.applyEvent(unknown({ occurred_at: first }))).toMatchObject({ message_id: id });
    expect(await rig.engine.applyEvent(unknown({ provider_message_id: 'prov-2' }))).toMatchObject({
      message_id: later,
    });
  });
});

test('without a match the message stays uncertain for a person', async () => {
  await rig.advance(3 * DAY);
  expect(rig.message(id).status).toBe('uncertain');
  expect(rig.outbound.take().filter((job) => job.kind === 'send' && job.message_id === id)).toHaveLength(1);
});
