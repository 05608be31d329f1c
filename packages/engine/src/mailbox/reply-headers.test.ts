import type { MessageId } from '@pmail/core/ids.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { copyOf, forward, headerOf, refusalOf, reply, replyAll } from './answers.fixture.ts';
import { arrive, type MailOptions } from './inbound.fixture.ts';
import { MailboxRig, MINUTE, type SendOptions } from './mailbox.fixture.ts';
import { accepted, attempt } from './transport.fixture.ts';

/** How an answer names the messages before it, its subject, and the count that ends loops. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

async function question(parsed: MailOptions['parsed'] = {}): Promise<MessageId> {
  rig.clock.now += MINUTE;
  return (await arrive(rig, { parsed })).message_id;
}

/** Sends and lets it leave; `rfc` is the id under which recipients see it, where its provider tells. */
async function sent(options: SendOptions, rfc: string | null = null): Promise<MessageId> {
  rig.clock.now += MINUTE;
  const { id } = await rig.send(options);
  await attempt(rig, id, accepted({ provider_message_id: `prov ${id}`, rfc_message_id: rfc }));
  return id;
}

const threadOf = (id: MessageId) => ({ thread_id: rig.message(id).thread_id });

/** What the row, the resource and the stored copy say; they say the same. */
async function place(id: MessageId): Promise<{ in_reply_to: string | null; references: string[] }> {
  const row = rig.sql.first<{ references_json: string }>('SELECT references_json FROM messages WHERE id = ?', id);
  const references = JSON.parse(row?.references_json ?? '') as string[];
  const { in_reply_to } = rig.message(id);
  const copy = await copyOf(rig, id);
  expect({ in_reply_to: copy.in_reply_to[0] ?? null, references: copy.references }).toEqual({
    in_reply_to,
    references,
  });
  return { in_reply_to, references };
}

describe('an answer names', () => {
  test.each([
    ['reply', reply],
    ['reply_all', replyAll],
  ])('(%s) the message it answers, and those before it', async (_operation, answer) => {
    const target = await question({
      rfc_message_id: 'c@example.net',
      in_reply_to: ['b@example.net'],
      references: ['a@example.net', 'b@example.net'],
    });
    expect(await place(await sent(answer(target)))).toEqual({
      in_reply_to: 'c@example.net',
      references: ['a@example.net', 'b@example.net', 'c@example.net'],
    });
  });

  test('the In-Reply-To of a message without References', async () => {
    const target = await question({ rfc_message_id: 'b@example.net', in_reply_to: ['a@example.net', 'z@example.net'] });
    expect(await place(await sent(reply(target)))).toEqual({
      in_reply_to: 'b@example.net',
      references: ['a@example.net', 'b@example.net'],
    });
  });

  test('the message answered also when there are later ones in the thread (R27)', async () => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    await question({ rfc_message_id: 'b@example.net', in_reply_to: ['a@example.net'] });
    expect(await place(await sent(reply(first)))).toEqual({
      in_reply_to: 'a@example.net',
      references: ['a@example.net'],
    });
  });

  test('an id without an @ as it is (R16)', async () => {
    const target = await question({ rfc_message_id: 'no-at-sign', references: ['neither.this'] });
    expect(await place(await sent(reply(target)))).toEqual({
      in_reply_to: 'no-at-sign',
      references: ['neither.this', 'no-at-sign'],
    });
  });

  test('the nearest earlier message when the id of the one answered is not known', async () => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    const ours = await sent(reply(first));
    await question({ rfc_message_id: 'later@example.net', in_reply_to: ['a@example.net'] });
    expect(await place(await sent(reply(ours)))).toEqual({
      in_reply_to: 'a@example.net',
      references: ['a@example.net'],
    });
  });

  test('what we sent by the id that recipients see, once the provider has told it', async () => {
    const ours = await sent({}, 'wire@provider.example');
    expect(await place(await sent(reply(ours)))).toEqual({
      in_reply_to: 'wire@provider.example',
      references: ['wire@provider.example'],
    });
  });

  test('nothing when no id of the thread is known', async () => {
    const ours = await sent({});
    const answer = await sent(reply(ours));
    expect(await place(answer)).toEqual({ in_reply_to: null, references: [] });
    expect(headerOf(rig, answer, 'In-Reply-To')).toBeUndefined();
    expect(headerOf(rig, answer, 'References')).toBeUndefined();
  });

  test('no id that we made up for mail without one', async () => {
    const target = await question({ rfc_message_id: null });
    expect(await place(await sent(reply(target)))).toEqual({ in_reply_to: null, references: [] });
    const other = await question({ rfc_message_id: 'a@example.net' });
    const next = (await arrive(rig, { parsed: { rfc_message_id: null, in_reply_to: ['a@example.net'] } })).message_id;
    expect(rig.message(next).thread_id).toBe(rig.message(other).thread_id);
    expect((await place(await sent(reply(next)))).in_reply_to).toBe('a@example.net');
  });

  test('(forward) those before it and the original in References alone', async () => {
    const target = await question({ rfc_message_id: 'b@example.net', references: ['a@example.net'] });
    const id = await sent(forward(target));
    expect(await place(id)).toEqual({ in_reply_to: null, references: ['a@example.net', 'b@example.net'] });
    expect(headerOf(rig, id, 'In-Reply-To')).toBeUndefined();
  });
});

describe('a send into a thread names', () => {
  test('its latest message, whoever wrote it (R27)', async () => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    expect((await place(await sent({ body: threadOf(first) }, 'ours@acme.example.com'))).in_reply_to).toBe(
      'a@example.net',
    );
    expect(await place(await sent({ body: threadOf(first) }))).toEqual({
      in_reply_to: 'ours@acme.example.com',
      references: ['a@example.net', 'ours@acme.example.com'],
    });
    await question({ rfc_message_id: 'c@example.net', in_reply_to: ['ours@acme.example.com'] });
    expect((await place(await sent({ body: threadOf(first) }))).in_reply_to).toBe('c@example.net');
  });

  test('the latest whose id is known', async () => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    await sent({ body: threadOf(first) });
    await sent({ body: threadOf(first) });
    expect((await place(await sent({ body: threadOf(first) }))).in_reply_to).toBe('a@example.net');
  });

  test.each(['quarantined', 'hidden', 'throttled'])('nothing that is %s', async (status) => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    const held = await question({ rfc_message_id: 'held@example.net', in_reply_to: ['a@example.net'] });
    rig.sql.run('UPDATE messages SET status = ? WHERE id = ?', status, held);
    expect(await place(await sent({ body: threadOf(first) }))).toEqual({
      in_reply_to: 'a@example.net',
      references: ['a@example.net'],
    });
  });

  test('nothing of another thread', async () => {
    const first = await question({ rfc_message_id: 'a@example.net' });
    await question({ rfc_message_id: 'other@example.net' });
    expect((await place(await sent({ body: threadOf(first) }))).in_reply_to).toBe('a@example.net');
  });
});

describe('References of a long thread', () => {
  test('are the first, and the newest up to twenty', async () => {
    const references = Array.from({ length: 150 }, (_, i) => `r${i}@example.net`);
    const target = await question({ rfc_message_id: 'last@example.net', references });
    const { references: written } = await place(await sent(reply(target)));
    expect(written).toEqual(['r0@example.net', ...references.slice(-18), 'last@example.net']);
  });

  test('fit into 2,048 bytes as written', async () => {
    const references = Array.from({ length: 20 }, (_, i) => `r${i}.${'x'.repeat(300)}@example.net`);
    const target = await question({ rfc_message_id: 'last@example.net', references });
    const id = await sent(reply(target));
    const header = headerOf(rig, id, 'References') ?? '';
    expect(header.length).toBeLessThanOrEqual(2_048);
    expect(header.startsWith(`<${references[0]}> `)).toBe(true);
    expect(header.endsWith(' <last@example.net>')).toBe(true);
  });

  test('do not grow with an exchange that goes on for ever', async () => {
    let last = 'q@example.net';
    let target = await question({ rfc_message_id: last });
    for (let i = 0; i < 30; i++) {
      const ours = await sent(reply(target), `ours${i}@acme.example.com`);
      const { in_reply_to, references } = await place(ours);
      expect(in_reply_to).toBe(last);
      expect(references.length).toBeLessThanOrEqual(20);
      expect([references[0], references.at(-1)]).toEqual(['q@example.net', last]);
      last = `theirs${i}@example.net`;
      target = await question({
        rfc_message_id: last,
        in_reply_to: [`ours${i}@acme.example.com`],
        references: [...references, `ours${i}@acme.example.com`],
      });
    }
    expect(rig.rows('threads')).toBe(1);
  });
});

describe('the subject', () => {
  test.each([
    ['Question', 'Re: Question', 'Fwd: Question'],
    ['Re: Question', 'Re: Question', 'Fwd: Question'],
    ['AW: WG: Re[2]: Question', 'Re: Question', 'Fwd: Question'],
    ['回复：转发: 予約', 'Re: 予約', 'Fwd: 予約'],
    ['Re: [list] Fwd: Question', 'Re: [list] Question', 'Fwd: [list] Question'],
    ['Reminder: pay', 'Re: Reminder: pay', 'Fwd: Reminder: pay'],
    ['', 'Re: (no subject)', 'Fwd: (no subject)'],
    ['  two \t lines \r\n X: y', 'Re: two lines X: y', 'Fwd: two lines X: y'],
    ['x'.repeat(998), `Re: ${'x'.repeat(994)}`, `Fwd: ${'x'.repeat(993)}`],
  ])('of answers to %j', async (subject, answered, forwarded) => {
    const target = await question({ subject });
    for (const [options, wanted] of [
      [reply(target), answered],
      [replyAll(target), answered],
      [forward(target), forwarded],
    ] as const) {
      const id = await sent(options);
      expect(rig.message(id).subject).toBe(wanted);
      expect((await copyOf(rig, id)).subject).toBe(wanted);
    }
  });

  test('of an answer is never taken from the body', async () => {
    const target = await question({ subject: 'Question' });
    const id = await sent(reply(target, { body: { subject: 'Other' } }));
    expect(rig.message(id).subject).toBe('Re: Question');
  });

  test('of a send into a thread is as it was given, and leaves that of the thread alone', async () => {
    const target = await question({ subject: 'Re: Question' });
    const id = await sent({ body: { ...threadOf(target), subject: 'RE: something else' } });
    expect(rig.message(id).subject).toBe('RE: something else');
    expect(rig.sql.all('SELECT subject FROM threads')).toEqual([{ subject: 'Question' }]);
  });
});

describe('the count of hops', () => {
  const hop = (id: MessageId): string | undefined => headerOf(rig, id, 'X-Pylota-Mail-Hop');

  test('is one for a new thread, and one more than that of what is answered, forwarded or followed', async () => {
    expect(hop(await sent({}))).toBe('1');
    const target = await question({ hop: 3 });
    expect(hop(await sent(reply(target)))).toBe('4');
    expect(hop(await sent(replyAll(target)))).toBe('4');
    expect(hop(await sent(forward(target)))).toBe('4');
    expect(hop(await sent({ body: threadOf(target) }))).toBe('4');
    expect(hop(await sent(reply(await question({ hop: 0 }))))).toBe('1');
  });

  test('ends a loop at ten (R24)', async () => {
    const eight = await question({ hop: 8 });
    expect(hop(await sent(reply(eight)))).toBe('9');
    const nine = await question({ hop: 9 });
    for (const options of [reply(nine), replyAll(nine), forward(nine), { body: threadOf(nine) }]) {
      expect(await rig.submit(options)).toEqual({ ok: false, code: 'loop_detected', details: { hop: 10 } });
    }
    expect(refusalOf(await rig.submit(reply(await question({ hop: 4_000 })))).code).toBe('loop_detected');
  });

  test('cannot be set by a caller', async () => {
    const target = await question({ hop: 3 });
    const answer = await rig.submit(reply(target, { body: { headers: { 'X-Pylota-Mail-Hop': '1' } } }));
    expect(refusalOf(answer)).toEqual({ code: 'header_not_allowed', paths: ['headers.X-Pylota-Mail-Hop'] });
  });
});
