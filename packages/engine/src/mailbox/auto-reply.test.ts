import type { MessageId } from '@pmail/core/ids.ts';
import { INBOUND_KINDS } from '@pmail/core/message/request.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { forward, headerOf, refusalOf, reply, replyAll } from './answers.fixture.ts';
import { arrive, type MailOptions } from './inbound.fixture.ts';
import { JO, MailboxRig, MINUTE, type SendOptions } from './mailbox.fixture.ts';
import { accepted, attempt, facts, REJECTED, Run, TIMEOUT } from './transport.fixture.ts';

/** Answers that a machine writes: to whom, with whose leave, and how many in a row. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

async function question(parsed: MailOptions['parsed'] = {}): Promise<MessageId> {
  rig.clock.now += MINUTE;
  return (await arrive(rig, { parsed })).message_id;
}

function auto(options: SendOptions): SendOptions {
  return { ...options, body: { ...options.body, kind: 'auto_reply' } };
}

let keys = 0;

async function codeOf(options: SendOptions): Promise<string> {
  const answer = await rig.submit({ key: `auto ${++keys}`, ...options });
  if (!answer.ok) return answer.code;
  await attempt(rig, answer.message.id, accepted({ provider_message_id: `prov ${answer.message.id}` }));
  return 'accepted';
}

const REFUSED = 'auto_reply_not_allowed';

describe('an automatic reply', () => {
  test('says in its header that it is one, and a reply by a person does not', async () => {
    const target = await question();
    const automatic = await rig.send(auto(reply(target)));
    expect(automatic.kind).toBe('auto_reply');
    expect(headerOf(rig, automatic.id, 'Auto-Submitted')).toBe('auto-replied');
    await attempt(rig, automatic.id, accepted());
    const human = await rig.send(reply(target));
    expect(human.kind).toBe('transactional');
    expect(headerOf(rig, human.id, 'Auto-Submitted')).toBeUndefined();
  });

  test.each(INBOUND_KINDS)('answers a person or an invitation and nothing else: %s', async (kind) => {
    const allowed = kind === 'normal' || kind === 'calendar';
    const target = await question({ kind });
    expect(await codeOf(auto(reply(target)))).toBe(allowed ? 'accepted' : REFUSED);
    expect(await codeOf(auto(replyAll(target)))).toBe(allowed ? 'accepted' : REFUSED);
    expect(await codeOf(reply(target))).toBe('accepted');
  });

  test('does not answer what we sent, begins no thread, goes into none and forwards nothing', async () => {
    const target = await question();
    const ours = await rig.send({});
    await attempt(rig, ours.id, accepted());
    expect(await codeOf(auto(reply(ours.id)))).toBe(REFUSED);
    expect(await codeOf(auto({}))).toBe(REFUSED);
    expect(await codeOf(auto({ body: { thread_id: rig.message(target).thread_id } }))).toBe(REFUSED);
    expect(await codeOf(auto(forward(target)))).toBe(REFUSED);
  });

  test('needs the leave of the tenant and of the identity', async () => {
    const target = await question();
    const tenant = { policy: { auto_reply: { allowed: false, max_automatic_exchanges: 2 } } };
    expect(await codeOf(auto(reply(target, tenant)))).toBe(REFUSED);
    expect(await codeOf(auto(reply(target, { identity: { send_policy: { auto_reply: 'denied' } } })))).toBe(REFUSED);
    expect(await codeOf(reply(target, tenant))).toBe('accepted');
    expect(await codeOf(auto(reply(target, { identity: { send_policy: { auto_reply: 'allowed' } } })))).toBe(
      'accepted',
    );
  });

  test.each([
    ['reply', reply],
    ['reply_all', replyAll],
  ])('or any %s cannot be marketing (R42)', async (_operation, answer) => {
    const marketing: SendOptions['body'] = {
      kind: 'marketing',
      unsubscribe: { url: 'https://acme.example.com/u' },
      consent: { basis: 'signed up', recorded_at: '2026-01-01T00:00:00Z' },
    };
    expect(refusalOf(await rig.submit(answer(await question(), { body: marketing })))).toEqual({
      code: 'marketing_requirements_missing',
      paths: ['kind'],
    });
  });
});

describe('automatic replies in a row', () => {
  test('are two; the third is refused, whatever came in between', async () => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    expect(await codeOf(auto(reply(first)))).toBe('accepted');
    const second = await question({ in_reply_to: ['a@example.net'] });
    expect(await codeOf(auto(reply(second)))).toBe('accepted');
    const third = await question({ in_reply_to: ['a@example.net'] });
    for (const target of [first, second, third]) expect(await codeOf(auto(reply(target)))).toBe(REFUSED);
    expect(await codeOf(auto(replyAll(third)))).toBe(REFUSED);
    expect(rig.rows('messages')).toBe(5);
  });

  test.each<[string, (target: MessageId) => SendOptions]>([
    ['reply', reply],
    ['reply to all', replyAll],
    ['forward', forward],
    ['send into the thread', (target) => ({ body: { thread_id: rig.message(target).thread_id } })],
  ])('begin anew after a %s of a person', async (_what, human) => {
    const target = await question();
    for (let i = 0; i < 2; i++) expect(await codeOf(auto(reply(target)))).toBe('accepted');
    expect(await codeOf(human(target))).toBe('accepted');
    for (let i = 0; i < 2; i++) expect(await codeOf(auto(reply(target)))).toBe('accepted');
    expect(await codeOf(auto(reply(target)))).toBe(REFUSED);
  });

  test('are counted for each thread by itself', async () => {
    const [one, two] = [await question(), await question()];
    for (let i = 0; i < 2; i++) expect(await codeOf(auto(reply(one)))).toBe('accepted');
    expect(await codeOf(auto(reply(two)))).toBe('accepted');
    expect(await codeOf(auto(reply(one)))).toBe(REFUSED);
  });

  test.each([0, 1, 5])('are as many as the policy says: %i', async (max) => {
    const target = await question();
    const policy = { auto_reply: { allowed: true, max_automatic_exchanges: max } };
    for (let i = 0; i < max; i++) expect(await codeOf(auto(reply(target, { policy })))).toBe('accepted');
    expect(await codeOf(auto(reply(target, { policy })))).toBe(REFUSED);
  });

  const ENDS: [string, boolean, (id: MessageId) => Promise<unknown>][] = [
    ['canceled', false, (id) => rig.engine.cancel(id)],
    ['rejected', false, (id) => attempt(rig, id, REJECTED)],
    ['failed', false, async (id) => new Run(rig, id).begin(facts({ state: 'failing' }))],
    ['uncertain', true, (id) => attempt(rig, id, TIMEOUT)],
    ['submitted', true, (id) => attempt(rig, id, accepted())],
  ];

  test.each(ENDS)('one that is %s counts: %s', async (status, counts, end) => {
    const target = await question();
    const policy = { auto_reply: { allowed: true, max_automatic_exchanges: 1 } };
    const { id } = await rig.send(auto(reply(target, { policy })));
    await end(id);
    expect(rig.message(id).status).toBe(status);
    expect(await codeOf(auto(reply(target, { policy })))).toBe(counts ? REFUSED : 'accepted');
  });

  test('one that waits counts, and one that nobody was written to does not', async () => {
    const target = await question();
    const policy = { auto_reply: { allowed: true, max_automatic_exchanges: 1 } };
    const kept = auto(reply(target, { policy, directory: { send_block: [JO] } }));
    expect((await rig.send(kept)).status).toBe('suppressed');
    expect((await rig.send(auto(reply(target, { policy })))).status).toBe('queued');
    expect(await codeOf(auto(reply(target, { policy })))).toBe(REFUSED);
  });

  test('a person counts from the moment of acceptance, even when that message is taken back', async () => {
    const target = await question();
    for (let i = 0; i < 2; i++) expect(await codeOf(auto(reply(target)))).toBe('accepted');
    const { id } = await rig.send(reply(target));
    await rig.engine.cancel(id);
    expect(await codeOf(auto(reply(target)))).toBe('accepted');
  });

  test('that a dry run asks about are counted, and the dry run is not', async () => {
    const target = await question();
    for (let i = 0; i < 3; i++) expect(await rig.dryRun(auto(reply(target)))).toMatchObject({ ok: true });
    for (let i = 0; i < 2; i++) expect(await codeOf(auto(reply(target)))).toBe('accepted');
    expect(await rig.dryRun(auto(reply(target)))).toMatchObject({ ok: false, code: REFUSED });
  });
});

describe('two machines that answer each other', () => {
  test('stop: each mailbox refuses after two, and the hop count ends what is left', async () => {
    let hop = 0;
    let answered = 0;
    const first = await question({ rfc_message_id: 'ping@example.net' });
    let target = first;
    for (let i = 0; i < 20; i++) {
      // The other side hides that it is a machine, and writes as fast as it can.
      if ((await codeOf(auto(reply(target)))) !== 'accepted') break;
      answered++;
      hop = Number(headerOf(rig, lastSent(), 'X-Pylota-Mail-Hop'));
      target = await question({ in_reply_to: ['ping@example.net'], hop });
    }
    expect({ answered, hop }).toEqual({ answered: 2, hop: 2 });
    // With a person who lets it go on, the count of hops still ends it.
    for (let i = 0; i < 20; i++) {
      if ((await codeOf(reply(target))) !== 'accepted') break;
      answered++;
      hop = Number(headerOf(rig, lastSent(), 'X-Pylota-Mail-Hop'));
      target = await question({ in_reply_to: ['ping@example.net'], hop });
    }
    expect({ answered, hop }).toEqual({ answered: 9, hop: 9 });
  });

  function lastSent(): MessageId {
    const row = rig.sql.first<{ id: MessageId }>(
      "SELECT id FROM messages WHERE direction = 'outbound' ORDER BY rowid DESC LIMIT 1",
    );
    if (row === undefined) throw new Error('nothing sent');
    return row.id;
  }
});
