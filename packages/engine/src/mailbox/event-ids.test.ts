import type { DeliveryEvent, LearnedId } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive } from './inbound.fixture.ts';
import { JO, KIM, LEE, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, REJECTED, Run, report, retryLater, TIMEOUT } from './transport.fixture.ts';

/** Which message a report means: the one that it names by any of its ids, ours among them. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

/** A report under an id that no message has, which names ours. */
function ours(id: MessageId, changes: Partial<DeliveryEvent> & { kind?: DeliveryEvent['kind'] } = {}): DeliveryEvent {
  const { kind = 'delivered', ...rest } = changes;
  return report(rig, kind, { source: 'ses', provider_message_id: 'ses-1', our_message_id: id, subject: null, ...rest });
}

async function uncertain(to = [JO, KIM]): Promise<MessageId> {
  const { id } = await rig.send({ body: { to } });
  await attempt(rig, id, TIMEOUT);
  return id;
}

const usage = (): number[] => [rig.quotaBooks.used, rig.usage('sends'), rig.usage('outbound')];

describe('an id', () => {
  test('is looked for among the Message-IDs, then those of providers, then the others', async () => {
    const [rfc, provider, alias] = [await rig.send(), await rig.send(), await rig.send()];
    await attempt(rig, rfc.id, accepted({ provider_message_id: 'p-1', rfc_message_id: 'same' }));
    await attempt(rig, provider.id, accepted({ provider_message_id: 'same' }));
    await attempt(rig, alias.id, accepted({ provider_message_id: 'p-3', deferred: [] }));
    rig.sql.run("INSERT INTO message_aliases SELECT 'same', rowid FROM messages WHERE id = ?", alias.id);
    const found = (): Promise<unknown> =>
      rig.engine.applyEvent(report(rig, 'deferred', { provider_message_id: 'same' }));
    expect(await found()).toMatchObject({ message_id: rfc.id });
    rig.sql.run('UPDATE messages SET rfc_message_id = NULL');
    expect(await found()).toMatchObject({ message_id: provider.id });
    rig.sql.run("UPDATE messages SET provider_message_id = 'other' WHERE id = ?", provider.id);
    expect(await found()).toMatchObject({ message_id: alias.id });
  });

  test('of a list leads on when the first of them is nobody’s, or of a message that did not go to the recipient', async () => {
    const [first, second] = [await rig.send({ body: { to: [KIM] } }), await rig.send({ body: { to: [JO] } })];
    await attempt(rig, first.id, accepted({ provider_message_id: 'p-1', rfc_message_id: 'a@example.com' }));
    await attempt(rig, second.id, accepted({ provider_message_id: 'p-2', rfc_message_id: 'b@example.com' }));
    const ids = ['nobody@example.com', 'a@example.com', 'b@example.com'];
    const about = { provider_message_id: null, message_ids: ids };
    expect(await rig.engine.applyEvent(report(rig, 'delivered', about))).toMatchObject({ message_id: second.id });
    // A report about somebody none of them went to changes nothing.
    const stranger = { ...about, recipient: LEE };
    expect(await rig.engine.applyEvent(report(rig, 'bounced', stranger))).toMatchObject({
      kind: 'duplicate',
      suppress: null,
    });
  });

  test('of ours counts after those of the world', async () => {
    const [known, named] = [await rig.send(), await rig.send()];
    await attempt(rig, known.id, accepted({ provider_message_id: 'ses-1' }));
    await attempt(rig, named.id, accepted({ provider_message_id: 'ses-2' }));
    expect(await rig.engine.applyEvent(ours(named.id))).toMatchObject({ message_id: known.id });
  });
});

describe('a report that names our id, about an uncertain send', () => {
  test('settles it exactly: ids, flag, event, and each recipient counted once', async () => {
    const id = await uncertain();
    expect(await rig.engine.applyEvent(ours(id, { rfc_message_id: 'ses-1@x.amazonses.com' }))).toMatchObject({
      kind: 'reconciled',
      message_id: id,
    });
    expect(rig.message(id)).toMatchObject({
      status: 'uncertain',
      provider_message_id: 'ses-1',
      rfc_message_id: 'ses-1@x.amazonses.com',
      flags: ['reconciled'],
    });
    // From here on its other recipients are found by the provider's id alone.
    const other = report(rig, 'bounced', { provider_message_id: 'ses-1', recipient: KIM, subject: null });
    expect(await rig.engine.applyEvent(other)).toMatchObject({ kind: 'applied' });
    expect(rig.eventTypes).toEqual(['message.uncertain', 'message.reconciled', 'message.delivered', 'message.bounced']);
    expect(usage()).toEqual([2, 2, 1]);
  });

  test('needs neither subject nor time, and is not led astray by a twin', async () => {
    const [first, twin] = [await uncertain(), await uncertain()];
    rig.clock.now += 600 * MINUTE;
    expect(await rig.engine.applyEvent(ours(twin))).toMatchObject({ kind: 'reconciled', message_id: twin });
    expect(rig.statuses(first)).toEqual({ [JO]: 'uncertain', [KIM]: 'uncertain' });
  });

  test('settles nothing else when that message is not here, or did not go to the recipient', async () => {
    const id = await uncertain([JO]);
    const before = rig.storage.dump();
    for (const event of [
      ours('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T', { subject: 'Your booking' }),
      ours(id, { recipient: KIM, subject: 'Your booking' }),
    ]) {
      expect(await rig.engine.applyEvent(event)).toEqual({ kind: 'not_found', ambiguous: false });
    }
    expect(rig.storage.dump()).toBe(before);
  });

  test('means no mail that arrived here', async () => {
    const { message_id } = await arrive(rig);
    expect(await rig.engine.applyEvent(ours(message_id))).toMatchObject({ kind: 'not_found' });
  });

  test('twice at once, by two reports: the first settles, the second only adds to it', async () => {
    const id = await uncertain([JO]);
    const answers = await Promise.all([
      rig.engine.applyEvent(ours(id)),
      rig.engine.applyEvent(ours(id, { kind: 'complained' })),
      rig.engine.applyEvent(ours(id, { kind: 'deferred' })),
    ]);
    expect(answers.map(({ kind }) => kind)).toEqual(['reconciled', 'applied', 'ignored']);
    expect(usage()).toEqual([1, 1, 1]);
    expect(rig.eventTypes.filter((type) => type === 'message.reconciled')).toHaveLength(1);
    expect(rig.message(id).status).toBe('complained');
  });
});

describe('a report that names our id, before our own record', () => {
  test.each([
    ['accepted', accepted({ provider_message_id: 'ses-1' }), 'submitted', 3],
    ['unknown', TIMEOUT, 'uncertain', 1],
    ['rejected', REJECTED, 'rejected', 1],
  ] as const)('is applied at once; the record, %s, decides about the others', async (_what, result, rest, used) => {
    const { id } = await rig.send({ body: { to: [JO, KIM, LEE] } });
    const run = new Run(rig, id);
    run.claim();
    expect(await rig.engine.applyEvent(ours(id))).toMatchObject({ kind: 'applied', message_id: id });
    expect(rig.message(id)).toMatchObject({ status: 'queued', provider_message_id: 'ses-1', flags: [] });
    expect(rig.quotaBooks).toMatchObject({ used: 1, held: 2 });
    await run.record(result);
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: rest, [LEE]: rest });
    expect(rig.quotaBooks).toMatchObject({ used, held: 0, holds: 0 });
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([used, 1]);
    expect(rig.eventTypes.filter((type) => type === 'message.sent')).toHaveLength(1);
  });

  test('for everybody: the record finds nobody left, and the message is told as sent once', async () => {
    const { id } = await rig.send({ body: { to: [JO, KIM] } });
    const run = new Run(rig, id);
    run.claim();
    for (const recipient of [JO, KIM]) await rig.engine.applyEvent(ours(id, { recipient }));
    expect(rig.message(id).status).toBe('delivered');
    await run.record(accepted({ provider_message_id: 'ses-1', rfc_message_id: 'ses-1@x.amazonses.com' }));
    expect(rig.message(id)).toMatchObject({ status: 'delivered', rfc_message_id: 'ses-1@x.amazonses.com' });
    expect(rig.quotaBooks).toMatchObject({ used: 2, held: 0, holds: 0 });
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([2, 1]);
    expect(rig.eventTypes).toEqual(['message.delivered', 'message.delivered', 'message.sent']);
  });

  test('keeps a send that waits for its next attempt from going to that recipient again', async () => {
    const { id } = await rig.send({ body: { to: [JO, KIM] } });
    await attempt(rig, id, retryLater('rate_limit'));
    await rig.engine.applyEvent(ours(id));
    const next = new Run(rig, id).claim();
    expect(next.to).toEqual([KIM]);
    expect(rig.quotaBooks).toMatchObject({ used: 1, held: 1 });
  });

  test('of a rejection ends the recipient and counts nothing', async () => {
    const { id } = await rig.send({ body: { to: [JO, KIM] } });
    const run = new Run(rig, id);
    run.claim();
    await rig.engine.applyEvent(ours(id, { kind: 'rejected' }));
    await run.record(accepted());
    expect(rig.statuses(id)).toEqual({ [JO]: 'rejected', [KIM]: 'submitted' });
    expect(rig.quotaBooks).toMatchObject({ used: 1, held: 0, holds: 0 });
  });

  test('whose claim runs out leaves only the others in doubt', async () => {
    const { id } = await rig.send({ body: { to: [JO, KIM] } });
    const run = new Run(rig, id);
    run.claim();
    await rig.engine.applyEvent(ours(id));
    await rig.advance(6 * MINUTE);
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'uncertain' });
    expect(rig.message(id).status).toBe('uncertain');
    await run.record(accepted({ provider_message_id: 'ses-1' }));
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'submitted' });
    expect(usage()).toEqual([2, 2, 1]);
  });

  test('never touches a canceled message', async () => {
    const { id } = await rig.send();
    await rig.engine.cancel(id);
    const before = rig.storage.dump();
    expect(await rig.engine.applyEvent(ours(id))).toMatchObject({ kind: 'ignored', message_id: id });
    expect(rig.storage.dump()).toBe(before);
  });
});

describe('a report that names our id, and a person (O5)', () => {
  test.each([
    ['sent', 'delivered', [1, 1, 1]],
    ['not_sent', 'failed', [0, 0, 0]],
  ] as const)('who said %s first: %s', async (outcome, status, counted) => {
    const id = await uncertain([JO]);
    await rig.engine.resolve(id, outcome);
    await rig.engine.applyEvent(ours(id));
    expect(rig.message(id)).toMatchObject({ status, provider_message_id: 'ses-1', flags: [] });
    expect(usage()).toEqual(counted);
  });

  test.each(['sent', 'not_sent'] as const)('who says %s second: refused, it is known', async (outcome) => {
    const id = await uncertain([JO]);
    await rig.engine.applyEvent(ours(id));
    expect(await rig.engine.resolve(id, outcome)).toMatchObject({ ok: false, code: 'not_uncertain' });
    expect(rig.message(id).status).toBe('delivered');
    expect(usage()).toEqual([1, 1, 1]);
  });

  test('at the same time: whoever is second finds what the first left', async () => {
    for (const first of ['event', 'person'] as const) {
      const id = await uncertain([JO]);
      const before = usage()[0] ?? 0;
      const event = (): Promise<unknown> => rig.engine.applyEvent(ours(id, { provider_message_id: `p ${first}` }));
      const person = (): Promise<unknown> => rig.engine.resolve(id, 'not_sent');
      await Promise.all(first === 'event' ? [event(), person()] : [person(), event()]);
      expect(rig.message(id).status).toBe(first === 'event' ? 'delivered' : 'failed');
      expect((usage()[0] ?? 0) - before).toBe(first === 'event' ? 1 : 0);
    }
  });

  test('and a late result of the call itself: each recipient is settled by the first who speaks of it', async () => {
    const { id } = await rig.send({ body: { to: [JO, KIM, LEE] } });
    const run = new Run(rig, id);
    run.claim();
    await rig.advance(6 * MINUTE);
    await rig.engine.applyEvent(ours(id, { kind: 'bounced' }));
    await run.record(accepted({ provider_message_id: 'ses-1', deferred: [LEE] }));
    await rig.engine.resolve(id, 'not_sent');
    expect(rig.statuses(id)).toEqual({ [JO]: 'bounced', [KIM]: 'submitted', [LEE]: 'failed' });
    expect(usage()).toEqual([2, 2, 1]);
    expect(rig.eventTypes.filter((type) => type === 'message.reconciled')).toHaveLength(2);
  });
});

describe('ids that a provider only tells', () => {
  const learned = (changes: Partial<LearnedId> = {}): LearnedId => ({
    sender: 'desk@acme.example.com',
    provider_message_id: 'ses-1',
    rfc_message_id: 'ses-1@x.amazonses.com',
    our_message_id: null,
    occurred_at: rig.clock.now,
    ...changes,
  });

  test('complete a message that is known by one of them, and settle nothing', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, accepted({ provider_message_id: 'ses-1' }));
    const told = rig.eventTypes;
    expect(rig.engine.learnId(learned())).toBe(true);
    expect(rig.engine.learnId(learned())).toBe(true);
    expect(rig.message(id)).toMatchObject({ status: 'submitted', rfc_message_id: 'ses-1@x.amazonses.com' });
    expect(rig.eventTypes).toEqual(told);
  });

  test('of an uncertain message that they name leave it so, and its reports are found from then on', async () => {
    const id = await uncertain([JO]);
    expect(rig.engine.learnId(learned())).toBe(false);
    expect(rig.engine.learnId(learned({ our_message_id: id }))).toBe(true);
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', provider_message_id: 'ses-1' });
    expect(usage()).toEqual([0, 0, 0]);
    const event = report(rig, 'delivered', { provider_message_id: 'ses-1', subject: null });
    expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'reconciled', message_id: id });
    expect(usage()).toEqual([1, 1, 1]);
  });

  test('beside others that stand there are known too, and lead answers into the thread', async () => {
    const { id, thread_id } = await rig.send();
    await attempt(rig, id, accepted({ provider_message_id: 'ses-1', rfc_message_id: 'first@example.com' }));
    rig.engine.learnId(learned());
    expect(rig.message(id).rfc_message_id).toBe('first@example.com');
    for (const named of ['ses-1@x.amazonses.com', 'first@example.com', 'ses-1']) {
      const answer = await arrive(rig, { parsed: { in_reply_to: [named] } });
      expect(answer.thread_id).toBe(thread_id);
    }
    expect((await arrive(rig, { parsed: { in_reply_to: ['ses-2@x.amazonses.com'] } })).thread_id).not.toBe(thread_id);
  });

  test('of a canceled message or of mail that arrived are not noted', async () => {
    const { id } = await rig.send();
    await rig.engine.cancel(id);
    const { message_id } = await arrive(rig);
    const before = rig.storage.dump();
    expect(rig.engine.learnId(learned({ our_message_id: id }))).toBe(true);
    expect(rig.engine.learnId(learned({ our_message_id: message_id }))).toBe(false);
    expect(rig.storage.dump()).toBe(before);
  });
});
