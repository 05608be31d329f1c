import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, Run, report, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
  await attempt(rig, id, accepted());
  await rig.advance(MINUTE);
});

/** Types since the acceptance. */
const news = (): string[] => rig.eventTypes.slice(1);

describe('a report', () => {
  test('changes its recipient, with codes and text, and is told', async () => {
    const answer = await rig.engine.applyEvent(report(rig, 'delivered'));
    expect(answer).toEqual({ kind: 'applied', message_id: id, outcome: 'delivered', suppress: null });
    expect(rig.message(id).deliveries?.[0]).toMatchObject({
      status: 'delivered',
      smtp_code: '250',
      enhanced_code: '2.0.0',
      smtp_response: '250 2.0.0 text',
      bounce_type: null,
      updated_at: new Date(rig.clock.now).toISOString(),
    });
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'submitted' });
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.eventData('message.delivered')).toEqual([{ message_id: id, recipient: JO, smtp_code: '250' }]);
    await rig.engine.applyEvent(report(rig, 'delivered', { recipient: KIM }));
    expect(rig.message(id).status).toBe('delivered');
  });

  test.each([
    ['bounced', 'hard', 'bounced', 'hard_bounce', true],
    ['soft_bounced', 'soft', 'other', null, false],
  ] as const)('of a bounce says which kind (%s)', async (kind, type, outcome, suppress, suppressed) => {
    expect(await rig.engine.applyEvent(report(rig, kind))).toMatchObject({ outcome, suppress });
    expect(rig.message(id).deliveries?.[0]).toMatchObject({ status: 'bounced', bounce_type: type });
    expect(rig.eventData('message.bounced')).toMatchObject([
      { message_id: id, recipient: JO, bounce_type: type, suppressed },
    ]);
  });

  test('of a complaint after the delivery counts (V5)', async () => {
    await rig.engine.applyEvent(report(rig, 'delivered'));
    expect(await rig.engine.applyEvent(report(rig, 'complained'))).toMatchObject({
      kind: 'applied',
      outcome: 'complained',
      suppress: 'complaint',
    });
    expect(rig.message(id).status).toBe('complained');
    expect(rig.eventData('message.complained')).toEqual([{ message_id: id, recipient: JO, suppressed: true }]);
  });

  test('of a bounce after the delivery counts (V6)', async () => {
    for (const recipient of [JO, KIM]) await rig.engine.applyEvent(report(rig, 'delivered', { recipient }));
    expect(rig.message(id).status).toBe('delivered');
    expect(await rig.engine.applyEvent(report(rig, 'bounced'))).toMatchObject({ kind: 'applied' });
    expect(rig.statuses(id)).toEqual({ [JO]: 'bounced', [KIM]: 'delivered' });
    expect(rig.message(id).status).toBe('bounced');
    await rig.engine.applyEvent(report(rig, 'complained'));
    expect(rig.message(id).status).toBe('complained');
  });

  test('that is stale changes nothing and is not told (V2)', async () => {
    await rig.engine.applyEvent(report(rig, 'delivered'));
    const told = news();
    const before = rig.message(id);
    expect(await rig.engine.applyEvent(report(rig, 'deferred'))).toMatchObject({ kind: 'ignored', outcome: null });
    expect(rig.message(id)).toEqual(before);
    expect(news()).toEqual(told);
  });

  test('brings its own details, and none of the status before stay beside them', async () => {
    await rig.engine.applyEvent(report(rig, 'deferred', { smtp_code: '451', enhanced_code: '4.2.0' }));
    const bounce = { smtp_code: '550', enhanced_code: null, smtp_response: null };
    await rig.engine.applyEvent(report(rig, 'bounced', bounce));
    expect(rig.message(id).deliveries?.[0]).toMatchObject({ status: 'bounced', bounce_type: 'hard', ...bounce });
  });

  test('with newer details of the same status is stored and not told', async () => {
    await rig.engine.applyEvent(report(rig, 'deferred'));
    const told = news();
    rig.clock.now += MINUTE;
    const later = { smtp_response: '451 4.2.0 still full', smtp_code: null };
    expect(await rig.engine.applyEvent(report(rig, 'deferred', later))).toMatchObject({ kind: 'applied' });
    expect(rig.message(id).deliveries?.[0]).toMatchObject({
      status: 'deferred',
      smtp_code: '451',
      smtp_response: '451 4.2.0 still full',
    });
    await rig.engine.applyEvent(report(rig, 'soft_bounced'));
    rig.clock.now += MINUTE;
    await rig.engine.applyEvent(report(rig, 'bounced', { smtp_response: '550 5.1.1 gone' }));
    expect(rig.message(id).deliveries?.[0]).toMatchObject({ bounce_type: 'hard', smtp_response: '550 5.1.1 gone' });
    expect(news()).toEqual([...told, 'message.bounced']);
  });

  test.each([
    ['before', -MINUTE],
    ['at the same time as', 0],
  ])('made %s the one whose details are shown does not replace them', async (_when, later) => {
    for (const kind of ['deferred', 'soft_bounced'] as const) {
      await rig.engine.applyEvent(report(rig, kind));
      const [before, told] = [rig.message(id), news()];
      const stale = { occurred_at: rig.clock.now + later, smtp_response: '451 4.2.0 earlier' };
      expect(await rig.engine.applyEvent(report(rig, kind, stale))).toMatchObject({ kind: 'ignored', message_id: id });
      expect(rig.message(id)).toEqual(before);
      expect(news()).toEqual(told);
    }
  });

  test('of a new status counts whenever it was made: the table alone decides', async () => {
    await rig.engine.applyEvent(report(rig, 'deferred'));
    const early = { occurred_at: rig.clock.now - MINUTE };
    expect(await rig.engine.applyEvent(report(rig, 'delivered', early))).toMatchObject({ kind: 'applied' });
    // A late bounce is newer than the delivery, although not than the deferral.
    const between = { occurred_at: rig.clock.now - MINUTE / 2 };
    expect(await rig.engine.applyEvent(report(rig, 'soft_bounced', early))).toMatchObject({ kind: 'applied' });
    expect(await rig.engine.applyEvent(report(rig, 'bounced', between))).toMatchObject({ kind: 'applied' });
    expect(rig.message(id).deliveries?.[0]).toMatchObject({ status: 'bounced', bounce_type: 'hard' });
  });

  test('keeps at most 512 characters of what the other side said', async () => {
    await rig.engine.applyEvent(report(rig, 'deferred', { smtp_response: 'x'.repeat(2_000) }));
    expect(rig.message(id).deliveries?.[0]?.smtp_response).toHaveLength(512);
  });

  test('of a failure gives no reason: what had made the message uncertain is none, and the text stands at the recipient', async () => {
    const { id: other } = await rig.send();
    await attempt(rig, other, TIMEOUT);
    await rig.engine.applyEvent(report(rig, 'failed', { provider_message_id: 'prov-2', smtp_response: 'expired' }));
    expect(rig.message(other)).toMatchObject({
      status: 'failed',
      status_reason: null,
      deliveries: [{ status: 'failed', smtp_response: 'expired' }],
    });
    expect(rig.eventData('message.failed')).toEqual([{ message_id: other, reason: null }]);
  });

  test.each([
    ['rejected', 'message.rejected', { reason: 'provider_validation', detail: '451 4.2.0 text' }],
    ['failed', 'message.failed', {}],
  ] as const)('of %s is told when the whole message becomes it, once', async (kind, type, data) => {
    await rig.engine.applyEvent(report(rig, kind));
    expect(rig.message(id).status).toBe('submitted');
    expect(news()).toEqual([]);
    await rig.engine.applyEvent(report(rig, kind, { recipient: KIM }));
    expect(rig.message(id).status).toBe(kind);
    expect(rig.eventData(type)).toMatchObject([{ message_id: id, ...data }]);
    await rig.engine.applyEvent(report(rig, kind, { recipient: KIM }));
    expect(news()).toEqual([type]);
  });
});

describe('a report that is not about this mailbox', () => {
  test('has an unknown id: not found, and nothing is written (V4)', async () => {
    const before = rig.storage.dump();
    expect(await rig.engine.applyEvent(report(rig, 'delivered', { provider_message_id: 'prov-x' }))).toEqual({
      kind: 'not_found',
      ambiguous: false,
    });
    expect(await rig.engine.applyEvent(report(rig, 'delivered', { provider_message_id: null }))).toMatchObject({
      kind: 'not_found',
    });
    expect(rig.storage.dump()).toBe(before);
  });

  test('names a recipient we did not send to: nothing to do, and nobody is suppressed (V4)', async () => {
    const before = rig.storage.dump();
    expect(await rig.engine.applyEvent(report(rig, 'bounced', { recipient: 'eve@example.net' }))).toEqual({
      kind: 'duplicate',
      message_id: id,
      outcome: null,
      suppress: null,
    });
    expect(rig.storage.dump()).toBe(before);
  });

  test('names a recipient that was filtered: ignored', async () => {
    const { id: other } = await rig.send({ body: { to: [JO, KIM] }, directory: { send_block: [KIM] } });
    await attempt(rig, other, accepted({ provider_message_id: 'prov-2' }));
    const about = { provider_message_id: 'prov-2', recipient: KIM };
    expect(await rig.engine.applyEvent(report(rig, 'delivered', about))).toMatchObject({ kind: 'ignored' });
    expect(rig.statuses(other)[KIM]).toBe('suppressed');
  });

  test('means inbound mail that happens to have the id', async () => {
    rig.sql.run("UPDATE messages SET direction = 'inbound'");
    expect(await rig.engine.applyEvent(report(rig, 'delivered'))).toMatchObject({ kind: 'not_found' });
  });
});

describe('the same report again', () => {
  test('changes nothing and asks for the same consequences (V1)', async () => {
    const event = report(rig, 'bounced');
    const first = await rig.engine.applyEvent(event);
    const before = rig.storage.dump();
    for (let i = 0; i < 5; i++) expect(await rig.engine.applyEvent(event)).toEqual({ ...first, kind: 'duplicate' });
    expect(rig.storage.dump()).toBe(before);
  });

  test('of a recipient, with the id of another one, is not a repeat', async () => {
    await rig.engine.applyEvent(report(rig, 'delivered', { event_id: 'e-1' }));
    await rig.engine.applyEvent(report(rig, 'delivered', { event_id: 'e-1', recipient: KIM }));
    expect(rig.message(id).status).toBe('delivered');
  });

  test('after twenty others is no longer known, and harmless all the same (V1)', async () => {
    const first = report(rig, 'delivered');
    await rig.engine.applyEvent(first);
    for (let i = 0; i < 20; i++) await rig.engine.applyEvent(report(rig, 'deferred'));
    const kept = rig.sql.first<{ ids: string }>(
      'SELECT provider_event_ids_json AS ids FROM deliveries WHERE address = ?',
      JO,
    );
    expect(JSON.parse(kept?.ids ?? '')).toHaveLength(20);
    expect(kept?.ids).not.toContain(first.event_id);
    const [before, told] = [rig.message(id), news()];
    const answer = await rig.engine.applyEvent(first);
    expect(answer).toEqual({ kind: 'ignored', message_id: id, outcome: 'delivered', suppress: null });
    expect(rig.message(id)).toEqual(before);
    expect(news()).toEqual(told);
  });
});

describe('a report whose id is no longer kept', () => {
  test('changes nothing and tells nothing: twenty-five deferrals, and the first once more (V1)', async () => {
    const reports: DeliveryEvent[] = [];
    for (let n = 1; n <= 25; n++) {
      rig.clock.now += MINUTE;
      reports.push(report(rig, 'deferred', { smtp_response: `451 4.2.0 try ${n}` }));
    }
    for (const event of reports) await rig.engine.applyEvent(event);
    const [first] = reports;
    if (first === undefined) throw new Error('no report');
    const kept = (): string => JSON.stringify(rig.sql.all('SELECT * FROM deliveries'));
    expect(kept()).not.toContain(first.event_id);
    const [before, told] = [rig.message(id), news()];
    expect(before.deliveries?.[0]?.smtp_response).toBe('451 4.2.0 try 25');
    rig.clock.now += MINUTE;
    expect(await rig.engine.applyEvent(first)).toMatchObject({ kind: 'ignored', outcome: null, suppress: null });
    expect(rig.message(id)).toEqual(before);
    expect(news()).toEqual(told);
    // Nor does any of the others, whether its id is kept or not.
    for (const event of reports) await rig.engine.applyEvent(event);
    expect(rig.message(id)).toEqual(before);
    expect(news()).toEqual(told);
  });
});

describe('a crash', () => {
  test('inside the change leaves nothing of it, and the repeat is the first (V7)', async () => {
    const event = report(rig, 'delivered');
    const before = rig.storage.dump();
    rig.dieAt('event.in_transaction');
    await expect(rig.engine.applyEvent(event)).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.storage.dump()).toBe(before);
    expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'applied' });
    expect(news()).toEqual(['message.delivered']);
  });
});

describe('a report about a send that is not known to have gone', () => {
  test('before our record finds no message, and finds it afterwards (V3)', async () => {
    const { id: other } = await rig.send();
    const run = new Run(rig, other);
    run.claim();
    const event = report(rig, 'delivered', { provider_message_id: 'prov-2' });
    expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'not_found' });
    await run.record(accepted({ provider_message_id: 'prov-2' }));
    expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'applied', message_id: other });
    expect(rig.message(other).status).toBe('delivered');
  });

  test('never touches a canceled message', async () => {
    const { id: other } = await rig.send({ body: { subject: 'Your booking' } });
    await rig.engine.cancel(other);
    const event = report(rig, 'delivered', { provider_message_id: 'prov-2' });
    expect(await rig.engine.applyEvent(event)).toMatchObject({ kind: 'not_found' });
    expect(rig.message(other).status).toBe('canceled');
  });

  test('counts a recipient that was uncertain as accepted, each once', async () => {
    const { id: other } = await rig.send({ body: { to: [JO, KIM] } });
    await attempt(rig, other, TIMEOUT);
    const before = rig.quotaBooks.used;
    const usage = [rig.usage('sends'), rig.usage('outbound')];
    const first = report(rig, 'delivered', { provider_message_id: 'prov-2' });
    await rig.engine.applyEvent(first);
    await rig.engine.applyEvent(first);
    await rig.engine.applyEvent(report(rig, 'complained', { provider_message_id: 'prov-2' }));
    expect(rig.quotaBooks.used - before).toBe(1);
    await rig.engine.applyEvent(report(rig, 'bounced', { provider_message_id: 'prov-2', recipient: KIM }));
    expect(rig.quotaBooks.used - before).toBe(2);
    expect([rig.usage('sends'), rig.usage('outbound')]).toEqual([(usage[0] ?? 0) + 2, (usage[1] ?? 0) + 1]);
  });

  test('that it was rejected counts nothing', async () => {
    const { id: other } = await rig.send();
    await attempt(rig, other, TIMEOUT);
    const before = rig.quotaBooks.used;
    await rig.engine.applyEvent(report(rig, 'rejected', { provider_message_id: 'prov-2' }));
    expect(rig.message(other).status).toBe('rejected');
    expect(rig.quotaBooks.used).toBe(before);
  });
});
