import type { Mailbox } from '@pmail/core/address/address.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { address, platformAddress } from '@pmail/core/policy/context.fixture.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arriveRaw, bytesOf, copyOf, refusalOf, reply, replyAll, sentTo } from './answers.fixture.ts';
import { arrive, DESK, type MailOptions } from './inbound.fixture.ts';
import { JO, KIM, LEE, MailboxRig, type SendOptions } from './mailbox.fixture.ts';
import { accepted, attempt } from './transport.fixture.ts';

/** Whom an answer goes to: worked out from the message answered and from what this mailbox knows of people. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

const person = (to: string, name = ''): Mailbox => ({ address: to, name });

async function question(parsed: MailOptions['parsed'] = {}, request: MailOptions['request'] = {}): Promise<MessageId> {
  return (await arrive(rig, { parsed, request })).message_id;
}

/** Mail to somebody, so that the mailbox has written to them. */
async function writeTo(to: string): Promise<MessageId> {
  const { id } = await rig.send({ body: { to: [to] } });
  await attempt(rig, id, accepted({ provider_message_id: `prov ${id}` }));
  return id;
}

describe('a reply to mail', () => {
  test('goes to its sender and nobody else, with the name', async () => {
    const target = await question({ to: [person(DESK), person(KIM)], cc: [person(LEE)] });
    const message = await rig.send(reply(target));
    expect(sentTo(message)).toEqual([`to ${JO}`]);
    expect(message).toMatchObject({ to: [person(JO, 'Jo')], cc: [], bcc: [], operation: 'reply' });
    const copy = await copyOf(rig, message.id);
    expect({ to: copy.to, cc: copy.cc }).toEqual({ to: [person(JO, 'Jo')], cc: [] });
  });

  const ELSEWHERE = 'jo.private@other.example';

  test('does not follow the Reply-To of a stranger to somewhere else', async () => {
    const target = await question({ reply_to: [person(ELSEWHERE)] });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${JO}`]);
  });

  test('follows the Reply-To of somebody who was written to before their mail came', async () => {
    await writeTo(JO);
    const target = await question({ reply_to: [person(ELSEWHERE)] });
    expect(rig.message(target).trust).toMatchObject({ known_sender: true });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${ELSEWHERE}`]);
  });

  test('does not take somebody for known who has only written to us, however often', async () => {
    await question();
    await question();
    const target = await question({ reply_to: [person(ELSEWHERE)] });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${JO}`]);
  });

  test('follows a Reply-To that this mailbox has written to, also since the mail came', async () => {
    const target = await question({ reply_to: [person(ELSEWHERE)] });
    await writeTo(ELSEWHERE);
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${ELSEWHERE}`]);
  });

  test('does not follow a Reply-To that has only written to us', async () => {
    await question({ from: person(ELSEWHERE) });
    const target = await question({ reply_to: [person(ELSEWHERE)] });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${JO}`]);
  });

  test('does not follow a Reply-To that the policy kept us from writing to', async () => {
    await rig.send({ body: { to: [ELSEWHERE] }, directory: { send_block: [ELSEWHERE] } });
    const target = await question({ reply_to: [person(ELSEWHERE)] });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${JO}`]);
  });

  test.each([
    ['a part of the organisation', 'jo@mail.example.co.uk', 'desk@example.co.uk', true],
    ['two parts of it', 'jo@a.example.co.uk', 'desk@b.example.co.uk', true],
    ['another organisation under the same public suffix', 'jo@example.co.uk', 'jo@other.co.uk', false],
    ['another customer of a shared host', 'jo@one.github.io', 'jo@two.github.io', false],
    ['a name that only ends alike', 'jo@example.net', 'jo@notexample.net', false],
  ])('judges a Reply-To at %s', async (_what, from, replyTo, followed) => {
    const target = await question({ from: person(from), reply_to: [person(replyTo)] });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${followed ? replyTo : from}`]);
  });

  test('looks at the first Reply-To alone', async () => {
    const target = await question({ reply_to: [person(ELSEWHERE), person('jo@mail.example.net')] });
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${JO}`]);
    const other = await question({ reply_to: [person('jo@mail.example.net'), person(ELSEWHERE)] });
    rig.clock.now += 200_000;
    expect(sentTo(await rig.send(reply(other)))).toEqual(['to jo@mail.example.net']);
  });

  test('that has no sender to go to is refused', async () => {
    const target = await question({ from: null, reply_to: [person(ELSEWHERE)] });
    expect(refusalOf(await rig.submit(reply(target)))).toEqual({ code: 'invalid_request', paths: ['to'] });
    await writeTo(ELSEWHERE);
    expect(sentTo(await rig.send(reply(target)))).toEqual([`to ${ELSEWHERE}`]);
  });

  test('takes no recipients from its body', async () => {
    const target = await question();
    const message = await rig.send(reply(target, { body: { to: [KIM], cc: [LEE], bcc: [LEE] } }));
    expect(sentTo(message)).toEqual([`to ${JO}`]);
  });

  test('that is not there, or may not be seen, is not answered', async () => {
    expect(refusalOf(await rig.submit(reply('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T'))).code).toBe('message_not_found');
    const target = await question();
    for (const status of ['hidden', 'throttled', 'quarantined']) {
      rig.sql.run('UPDATE messages SET status = ? WHERE id = ?', status, target);
      expect(refusalOf(await rig.submit(reply(target))).code).toBe('message_not_found');
    }
    const reviewer = { ...(await rig.request(reply(target))), can_review_quarantine: true };
    const asked = { ...reviewer, directory: { ...reviewer.directory, checked: [JO] } };
    expect(await rig.engine.submit(asked)).toMatchObject({ ok: true });
  });
});

describe('a reply to what we sent', () => {
  test('goes to the same to and cc again, and not to those in bcc', async () => {
    const first = await rig.send({
      body: { to: [JO, { address: KIM, name: 'Kim' }], cc: [LEE], bcc: ['boss@example.org'] },
    });
    await attempt(rig, first.id, accepted());
    const message = await rig.send(reply(first.id));
    expect(sentTo(message)).toEqual([`to ${JO}`, `to ${KIM}`, `cc ${LEE}`]);
    expect(message.to).toEqual([person(JO), person(KIM, 'Kim')]);
    expect(bytesOf(rig, message.id)).not.toContain('boss@');
  });

  test('of which only bcc is left is refused', async () => {
    const first = await rig.send({ body: { to: undefined, bcc: [JO] } });
    await attempt(rig, first.id, accepted());
    expect(refusalOf(await rig.submit(reply(first.id)))).toEqual({ code: 'invalid_request', paths: ['to'] });
    expect(refusalOf(await rig.submit(replyAll(first.id)))).toEqual({ code: 'invalid_request', paths: ['to'] });
  });

  test.each(['queued', 'canceled', 'bounced', 'uncertain'])('may be of a message that is %s', async (status) => {
    const first = await rig.send();
    rig.sql.run('UPDATE messages SET status = ? WHERE id = ?', status, first.id);
    expect(sentTo(await rig.send(reply(first.id)))).toEqual([`to ${JO}`]);
  });
});

const ADDRESSES = [
  address(),
  platformAddress(),
  address({ address: 'sales@acme.example.com', role: 'alias', status: 'active' }),
  address({ address: 'old@acme.example.com', role: 'alias', status: 'retiring' }),
  address({ address: 'gone@acme.example.com', role: 'alias', status: 'retired' }),
  address({ address: 'new@acme.example.com', role: 'alias', status: 'pending' }),
];

describe('a reply to all', () => {
  test('goes to the sender, then to, and cc as cc', async () => {
    const target = await question({
      to: [person(DESK), person(KIM, 'Kim')],
      cc: [person(LEE), person('sam@example.org', 'Sam')],
    });
    const message = await rig.send(replyAll(target));
    expect(sentTo(message)).toEqual([`to ${JO}`, `to ${KIM}`, `cc ${LEE}`, 'cc sam@example.org']);
    expect(message).toMatchObject({ to: [person(JO, 'Jo'), person(KIM, 'Kim')], operation: 'reply_all' });
    const copy = await copyOf(rig, message.id);
    expect(copy.cc).toEqual([person(LEE), person('sam@example.org', 'Sam')]);
  });

  test('never goes to an address of the identity, in whatever state, with or without a tag', async () => {
    const own = ADDRESSES.map((entry) => person(entry.address));
    const tagged = ADDRESSES.map((entry) => person(entry.address.replace('@', '+t01.abcdefgh@')));
    const target = await question({ to: [...own, person(KIM)], cc: [...tagged, person(LEE)] });
    const message = await rig.send(replyAll(target, { directory: { addresses: ADDRESSES } }));
    expect(sentTo(message)).toEqual([`to ${JO}`, `to ${KIM}`, `cc ${LEE}`]);
    const [head = ''] = bytesOf(rig, message.id).split('\r\n\r\n', 1);
    expect(head).not.toMatch(/gone@|old@|new@|sales@/);
  });

  test('goes to everybody once, at the first place where they stand', async () => {
    const target = await question({
      to: [person(KIM), person(DESK), person(JO), person(KIM)],
      cc: [person(KIM), person(LEE), person(LEE, 'Lee')],
    });
    expect(sentTo(await rig.send(replyAll(target)))).toEqual([`to ${JO}`, `to ${KIM}`, `cc ${LEE}`]);
  });

  test('follows a Reply-To by the same rule as a reply', async () => {
    const replyTo = [person('jo.private@other.example')];
    const target = await question({ reply_to: replyTo, to: [person(DESK), person(KIM)] });
    expect(sentTo(await rig.send(replyAll(target)))).toEqual([`to ${JO}`, `to ${KIM}`]);
    await writeTo(JO);
    rig.clock.now += 200_000;
    const known = await question({ reply_to: replyTo, to: [person(DESK), person(KIM)] });
    expect(sentTo(await rig.send(replyAll(known)))).toEqual(['to jo.private@other.example', `to ${KIM}`]);
  });

  test('to what we sent goes to the others again, and never to bcc', async () => {
    const first = await rig.send({ body: { to: [JO, DESK], cc: [KIM], bcc: ['boss@example.org'] } });
    await attempt(rig, first.id, accepted());
    const message = await rig.send(replyAll(first.id));
    expect(sentTo(message)).toEqual([`to ${JO}`, `cc ${KIM}`]);
    expect(message.bcc).toEqual([]);
    expect(bytesOf(rig, message.id)).not.toContain('boss@');
  });

  test('to mail that names only us is refused', async () => {
    const target = await question({ from: person('sales@acme.example.com'), to: [person(DESK)] });
    const answer = await rig.submit(replyAll(target, { directory: { addresses: ADDRESSES } }));
    expect(refusalOf(answer)).toEqual({ code: 'invalid_request', paths: ['to'] });
  });

  test('counts everybody against the bound on recipients', async () => {
    const many = Array.from({ length: 10 }, (_, i) => person(`p${i}@example.org`));
    const target = await question({ to: [person(DESK), ...many.slice(0, 5)], cc: many.slice(5) });
    expect(await rig.submit(replyAll(target))).toMatchObject({ code: 'too_many_recipients', details: { limit: 10 } });
    expect(sentTo(await rig.send(replyAll(target, { policy: { max_recipients: 11 } })))).toHaveLength(11);
  });
});

describe('a reply to all of mail that reached us as a blind copy', () => {
  /** Our address as somebody else could find it in the reply, beside From and the Reply-To that follows from it. */
  function mentionsOfUs(id: MessageId): string[] {
    const [head = ''] = bytesOf(rig, id).split('\r\n\r\n', 1);
    const lines = head.replaceAll('\r\n ', ' ').split('\r\n');
    return lines.filter((line) => line.includes('desk') && !/^(From|Reply-To): /.test(line));
  }

  test('goes to those it names, and shows of us nothing but the sender', async () => {
    const target = await question(
      { to: [person(KIM)], cc: [person(LEE)] },
      { envelope_to: 'desk.acme@agents.example' },
    );
    expect(rig.message(target)).toMatchObject({ flags: ['bcc'], delivered_to: 'desk.acme@agents.example' });
    const message = await rig.send(replyAll(target));
    expect(sentTo(message)).toEqual([`to ${JO}`, `to ${KIM}`, `cc ${LEE}`]);
    // Not from the address that the blind copy went to, which nobody named.
    expect(message.from?.address).toBe(DESK);
    expect(bytesOf(rig, message.id)).not.toContain('desk.acme@agents.example');
    expect(mentionsOfUs(message.id)).toEqual([]);
  });

  test('with groups and nobody in To: the sender and those in cc (case 73)', async () => {
    const { message_id: target } = await arriveRaw(rig, [
      'From: jo@example.net',
      'To: undisclosed-recipients:;',
      'Cc: Team: Kim <kim@example.org>, lee@example.org;',
      'Subject: hi',
      'Message-ID: <u1@example.net>',
      'Date: Mon, 30 Nov 2026 08:00:00 +0000',
      '',
      'x',
    ]);
    const answered = rig.message(target);
    expect(answered).toMatchObject({
      to: [],
      cc: [person('kim@example.org', 'Kim'), person('lee@example.org')],
      delivered_to: DESK,
    });
    expect(answered.flags).toContain('bcc');
    const message = await rig.send(replyAll(target));
    expect(sentTo(message)).toEqual(['to jo@example.net', 'cc kim@example.org', 'cc lee@example.org']);
    expect(mentionsOfUs(message.id)).toEqual([]);
  });
});

describe('recipients of an answer that may not be written to (R35)', () => {
  test('are kept back, the others are sent to, and only those are held', async () => {
    const target = await question({ to: [person(DESK), person(KIM)], cc: [person(LEE)] });
    const { id } = await rig.send(
      replyAll(target, { directory: { suppressions: { [JO]: 'complaint' }, send_block: [LEE] } }),
    );
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'queued', [LEE]: 'suppressed' });
    expect(rig.quotaBooks).toMatchObject({ held: 1, counted: 1 });
  });

  test('all of them: accepted and ended at once, without hold, count, pointer or lock', async () => {
    const target = await question();
    const message = await rig.send(reply(target, { directory: { suppressions: { [JO]: 'hard_bounce' } } }));
    expect(message).toMatchObject({ status: 'suppressed' });
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 0, counted: 0, tenant: 0 });
    expect(rig.outbound.sent).toEqual([]);
    expect(rig.sql.first('SELECT lock_owner FROM threads')).toEqual({ lock_owner: null });
    expect(rig.eventData('message.suppressed')).toMatchObject([
      { message_id: message.id, recipients: [{ address: JO, reason: 'hard_bounce' }] },
    ]);
    expect(await rig.submit(reply(target, { key: 'again' }))).toMatchObject({ ok: true });
  });

  test.each<[string, SendOptions['directory']]>([
    ['all_recipients_suppressed', { suppressions: { [JO]: 'hard_bounce', [KIM]: 'manual' } }],
    ['recipient_blocked', { suppressions: { [JO]: 'hard_bounce' }, send_block: ['@example.net'] }],
  ])('all of them, only tried: %s, with everybody listed (R32)', async (code, directory) => {
    const target = await question({ to: [person(DESK), person(KIM)] });
    const answer = await rig.dryRun(replyAll(target, directory === undefined ? {} : { directory }));
    expect(answer).toMatchObject({
      ok: false,
      code,
      details: {
        recipients: [
          { address: JO, field: 'to', status: 'suppressed' },
          { address: KIM, field: 'to', status: 'suppressed' },
        ],
      },
    });
  });

  test('are asked about by name, when the directory was not asked about them yet', async () => {
    const target = await question({ to: [person(DESK), person(KIM)], cc: [person(LEE)] });
    const request = await rig.request(replyAll(target));
    expect(await rig.engine.submit(request)).toEqual({
      ok: false,
      code: 'directory_needed',
      recipients: [JO, KIM, LEE],
    });
    expect(rig.rows('messages')).toBe(1);
    const asked = { ...request, directory: { ...request.directory, checked: [JO, KIM] } };
    expect(await rig.engine.submit(asked)).toEqual({ ok: false, code: 'directory_needed', recipients: [LEE] });
  });
});
