import type { MessageId, ThreadId } from '@pmail/core/ids.ts';
import { checkThreadToken } from '@pmail/core/threading/token.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arriveRaw, bytesOf, copyOf, headerOf, refusalOf, reply } from './answers.fixture.ts';
import { arrive, DESK } from './inbound.fixture.ts';
import { MailboxRig, MINUTE, THREAD_KEY } from './mailbox.fixture.ts';
import { accepted, attempt, Run, retryLater } from './transport.fixture.ts';

/** What went wrong for others who run such systems, played against a mailbox. The numbers are those of the reports. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

/** A send that left under a known id, and the thread it began. */
async function booking(rfc: string | null): Promise<{ id: MessageId; thread_id: ThreadId }> {
  const { id, thread_id } = await rig.send({ body: { subject: 'Your booking 4471', text: 'Confirmed.' } });
  await attempt(rig, id, accepted({ provider_message_id: '0101019ab3c4-msg-4471', rfc_message_id: rfc }));
  return { id, thread_id };
}

function mailOf(id: string, headers: string[], from = 'jo@example.net'): string[] {
  return [
    `From: ${from}`,
    `To: ${DESK}`,
    'Subject: Re: Your booking 4471',
    `Message-ID: <${id}>`,
    ...headers,
    'Date: Mon, 30 Nov 2026 08:50:00 +0000',
    '',
    'x',
  ];
}

const threadOf = (id: MessageId): ThreadId => rig.message(id).thread_id;

describe('case 74: ids with nothing between them', () => {
  const OURS = '01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com';

  test.each([
    ['no blank', `<root@example.net><${OURS}>`],
    ['a comma', `<root@example.net>,<${OURS}>`],
    ['a comment with an id in it', `<root@example.net> (was: x <y@z>) <${OURS}>`],
    ['a fold', `<root@example.net>\r\n\t<${OURS}>`],
  ])('%s: the thread is found, and our answer names both', async (_what, references) => {
    const { thread_id } = await booking(OURS);
    const { message_id } = await arriveRaw(rig, mailOf('a@example.net', [`References: ${references}`]));
    expect(threadOf(message_id)).toBe(thread_id);
    const answer = await rig.send(reply(message_id));
    expect(headerOf(rig, answer.id, 'References')).toBe(`<root@example.net> <${OURS}> <a@example.net>`);
    expect((await copyOf(rig, answer.id)).references).toEqual(['root@example.net', OURS, 'a@example.net']);
  });
});

test('case 78: the same subject is not a thread, and another subject does not leave one', async () => {
  const mail = (
    id: string,
    subject: string,
    from: string,
    headers: string[] = [],
  ): Promise<{ message_id: MessageId }> =>
    arriveRaw(rig, [
      `From: ${from}`,
      `To: ${DESK}`,
      `Subject: ${subject}`,
      `Message-ID: <${id}@example.net>`,
      ...headers,
      'Date: Mon, 30 Nov 2026 08:50:00 +0000',
      '',
      'x',
    ]);
  const threads: ThreadId[] = [];
  for (const arrival of [
    await mail('q1', 'New text message', 'jo@example.net'),
    await mail('q2', 'New text message', 'jo@example.net'),
    await mail('q3', 'Re: New text message', 'kim@example.org', ['References: <gone@example.org>']),
    await mail('q4', 'something else', 'jo@example.net', ['In-Reply-To: <q1@example.net>']),
  ]) {
    threads.push(threadOf(arrival.message_id));
  }
  const [a, b, c, d] = threads;
  expect(new Set([a, b, c]).size).toBe(3);
  expect(d).toBe(a);
});

describe('case 38: the id that a provider returns is not the one that recipients see', () => {
  const ANSWER = mailOf('r1@mail.example.net', [
    'In-Reply-To: <7c1e@mx.cf.example>',
    'References: <7c1e@mx.cf.example>',
  ]);

  test('an answer that names the header we never learned begins a thread of its own', async () => {
    const { id, thread_id } = await booking(null);
    expect(rig.message(id)).toMatchObject({
      provider_message_id: '0101019ab3c4-msg-4471',
      rfc_message_id: null,
    });
    const { message_id } = await arriveRaw(rig, ANSWER);
    expect(threadOf(message_id)).not.toBe(thread_id);
  });

  test('the token of the Reply-To brings it home, and what we send next names nothing but what was seen', async () => {
    const { id, thread_id } = await booking(null);
    const [replyTo] = rig.message(id).reply_to;
    const detail = /\+([^@]+)@/.exec(replyTo?.address ?? '')?.[1] ?? '';
    const token = await checkThreadToken([THREAD_KEY], rig.owner.identity_id, detail);
    const answered = await arrive(rig, {
      request: { envelope_to: replyTo?.address ?? '', token },
      parsed: {
        to: [{ address: replyTo?.address ?? '', name: '' }],
        rfc_message_id: 'r1@mail.example.net',
        in_reply_to: ['7c1e@mx.cf.example'],
        references: ['7c1e@mx.cf.example'],
      },
    });
    expect(threadOf(answered.message_id)).toBe(thread_id);
    expect(rig.message(answered.message_id).trust?.flags).toEqual([]);
    const next = await rig.send(reply(answered.message_id));
    expect(next.in_reply_to).toBe('r1@mail.example.net');
    await attempt(rig, next.id, accepted({ provider_message_id: '0101019ab3c4-msg-4472' }));
    const threaded = await rig.send({ body: { thread_id } });
    expect(threaded.in_reply_to).toBe('r1@mail.example.net');
    for (const message of [next, threaded]) expect(bytesOf(rig, message.id)).not.toContain('0101019ab3c4');
  });

  test('an answer that names the internal id is filed, since some programs do write it', async () => {
    const { thread_id } = await booking(null);
    const { message_id } = await arriveRaw(rig, mailOf('r2@example.net', ['In-Reply-To: <0101019ab3c4-msg-4471>']));
    expect(threadOf(message_id)).toBe(thread_id);
  });
});

describe('case 3: a complete 4xx answer to the final dot is a refusal, not a doubt', () => {
  test('the message waits about a minute, and the next attempt sends the same bytes', async () => {
    const { id } = await rig.send();
    const first = new Run(rig, id);
    const { r2_key, mime_sha256 } = first.claim();
    const answer = await first.record(retryLater('relay'));
    expect(rig.message(id)).toMatchObject({ status: 'queued', status_reason: null });
    expect(answer.delay_ms).toBeGreaterThanOrEqual(54_000);
    expect(answer.delay_ms).toBeLessThanOrEqual(66_000);
    rig.clock.now += MINUTE + 6_000;
    const second = new Run(rig, id);
    expect(second.claim()).toMatchObject({ r2_key, mime_sha256 });
    await second.record(accepted());
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.eventTypes).toEqual(['message.sent']);
  });
});

describe('cases 61 and 65: what is over its bound is refused with its path, and nothing is composed', () => {
  test('a subject of 999 characters', async () => {
    expect(refusalOf(await rig.submit({ body: { subject: 'é'.repeat(999) } }))).toEqual({
      code: 'invalid_request',
      paths: ['subject'],
    });
    const { id } = await rig.send({ body: { subject: 'é'.repeat(998) } });
    expect((await copyOf(rig, id)).subject).toBe('é'.repeat(998));
  });

  test('a file name of 256 bytes', async () => {
    const named = (filename: string) => ({
      body: { attachments: [{ filename, content_type: 'application/pdf', content_base64: 'YQ==' }] },
    });
    expect(refusalOf(await rig.submit(named(`${'é'.repeat(126)}.txt`)))).toEqual({
      code: 'invalid_request',
      paths: ['attachments[0].filename'],
    });
    const { id } = await rig.send(named(`${'é'.repeat(125)}.txt`));
    expect((await copyOf(rig, id)).attachments[0]?.filename).toBe(`${'é'.repeat(125)}.txt`);
  });
});

test('case 103: the cap of a day in Berlin comes back once, at local midnight, for sends of a mailbox', async () => {
  const options = { policy: { identity_daily_send_cap: 3 }, tenant: { timezone: 'Europe/Berlin' } };
  const times: [string, string][] = [
    ['2026-11-29T09:00:00Z', 'ok'],
    ['2026-11-29T15:00:00Z', 'ok'],
    ['2026-11-29T22:58:00Z', 'ok'],
    ['2026-11-29T22:59:59Z', '2026-11-29T23:00:00.000Z'],
    ['2026-11-29T23:00:00Z', 'ok'],
    ['2026-11-29T23:00:01Z', 'ok'],
    ['2026-11-30T07:00:00Z', 'ok'],
    ['2026-11-30T08:59:00Z', '2026-11-30T23:00:00.000Z'],
    ['2026-11-30T22:59:59Z', '2026-11-30T23:00:00.000Z'],
  ];
  const warned: number[] = [];
  for (const [index, [at, wanted]] of times.entries()) {
    rig.clock.now = Date.parse(at);
    const before = rig.eventData('quota.warning').length;
    const answer = await rig.submit({ key: `key of ${index}`, ...options });
    const got = answer.ok ? 'ok' : (answer.details as { resets_at: string }).resets_at;
    expect({ at, got }).toEqual({ at, got: wanted });
    const fresh = rig.eventData('quota.warning').slice(before);
    if (fresh.some(({ percent }) => percent === 100)) warned.push(index + 1);
  }
  expect(warned).toEqual([3, 7]);
});
