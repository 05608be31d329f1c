import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { JournalCopy } from './learn-ids.ts';
import { JO, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, facts, REJECTED, Run, retryLater, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;
let run: Run;

const OWN = 'desk@acme.example.com';

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO], subject: 'Your booking 4471' } }));
  run = new Run(rig, id);
});

describe('a journal copy', () => {
  const copy = (changes: Partial<JournalCopy> = {}): JournalCopy => ({
    message_id: id,
    header_id: '<7c1e@MX.cf.example>',
    from: OWN,
    subject: 'Your booking 4471',
    id_domain: null,
    ...changes,
  });
  const learned = (): string | null => rig.message(id).rfc_message_id;

  test('teaches the id that recipients see, once, and tells nobody (case 38)', async () => {
    run.claim();
    await run.record(accepted({ provider_message_id: '0101019ab3c4-msg-4471' }));
    const events = rig.eventTypes;
    expect(rig.engine.learnMessageId(copy())).toBe(true);
    expect(rig.message(id)).toMatchObject({
      provider_message_id: '0101019ab3c4-msg-4471',
      rfc_message_id: '7c1e@mx.cf.example',
    });
    expect(rig.engine.learnMessageId(copy({ header_id: '<other@mx.cf.example>' }))).toBe(false);
    expect(learned()).toBe('7c1e@mx.cf.example');
    expect(rig.eventTypes).toEqual(events);
  });

  test('of an uncertain message teaches it too, and decides nothing', async () => {
    run.claim();
    await run.record(TIMEOUT);
    expect(rig.engine.learnMessageId(copy())).toBe(true);
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', rfc_message_id: '7c1e@mx.cf.example' });
  });

  test('may have the blanks of its subject folded', async () => {
    ({ id } = await rig.send({ body: { to: [JO], subject: 'Your  booking   4471 ' } }));
    run = new Run(rig, id);
    run.claim();
    await run.record(accepted());
    expect(rig.engine.learnMessageId(copy({ subject: 'Your booking 4471' }))).toBe(true);
  });

  test.each<[string, Partial<JournalCopy>]>([
    ['another sender', { from: 'eve@acme.example.com' }],
    ['another subject', { subject: 'Your booking' }],
    ['another message', { message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T' }],
    ['no id', { header_id: '' }],
    ['an id without a domain', { header_id: '<7c1e>' }],
    ['an id of another domain than the provider makes', { id_domain: 'mail.cf.example' }],
  ])('with %s teaches nothing', async (_what, changes) => {
    run.claim();
    await run.record(accepted());
    expect(rig.engine.learnMessageId(copy(changes))).toBe(false);
    expect(learned()).toBeNull();
  });

  test('of a message that has not left teaches nothing', async () => {
    expect(rig.engine.learnMessageId(copy())).toBe(false);
    run.claim();
    expect(rig.engine.learnMessageId(copy())).toBe(false);
    await run.record(REJECTED);
    expect(rig.engine.learnMessageId(copy())).toBe(false);
    expect(learned()).toBeNull();
  });

  test('of a message that was canceled teaches nothing', async () => {
    await rig.engine.cancel(id);
    expect(rig.engine.learnMessageId(copy())).toBe(false);
  });

  test('of a message that left by another transport teaches nothing', async () => {
    run.claim(facts({ transport: 'ses' }));
    await run.record(accepted());
    expect(rig.engine.learnMessageId(copy())).toBe(false);
  });

  test('counts for a quarter of an hour after the call, however long the message had waited before', async () => {
    run.claim();
    await run.record(retryLater('quota'));
    await rig.advance(60 * MINUTE);
    const again = new Run(rig, id);
    again.claim();
    await again.record(accepted());
    await rig.advance(15 * MINUTE);
    expect(rig.engine.learnMessageId(copy())).toBe(false);
    rig.clock.now -= 1;
    expect(rig.engine.learnMessageId(copy())).toBe(true);
  });

  test('of a mail that arrived teaches nothing', async () => {
    rig.sql.run("UPDATE messages SET direction = 'inbound', accepted = 1, provider = 'cloudflare'");
    expect(rig.engine.learnMessageId(copy())).toBe(false);
  });
});
