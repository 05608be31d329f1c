import { env } from 'cloudflare:workers';
import { toBase64 } from '@pmail/core/hash.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  accepted,
  answered,
  arrive,
  atRest,
  inMailbox,
  type Lab,
  letter,
  makeLab,
  person,
  suppressAddress,
  until,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, paths, refusal, send } from './support.ts';

/** Answers and forwards over HTTP, between identities that really get each other's mail. */

keepStorage();

let root: string;
let lab: Lab;
let cid: string;
let dot: string;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
  cid = await person(root, lab.tenant, 'cid');
  dot = await person(root, lab.tenant, 'dot');
});

afterEach(() => {
  vi.restoreAllMocks();
});

const ANN = 'ann.lab@agents.example';
const BOB = 'bob.lab@agents.example';
const CID = 'cid.lab@agents.example';
const DOT = 'dot.lab@agents.example';
/** Ann's address with the token of a thread behind a plus. */
const ANN_THREAD = /^ann\.lab\+t[0-9a-hjkmnp-tv-z]+\.[0-9a-hjkmnp-tv-z]{8}@agents\.example$/;

const get = (identity_id: string, message_id: string, include = 'headers') =>
  call(lab.key, 'messages.get', { params: { identity_id, message_id }, query: { include } });

type Read = Awaited<ReturnType<typeof get>>;

const header = ({ headers }: Read, name: string): string | undefined =>
  headers?.find((field) => field.name.toLowerCase() === name.toLowerCase())?.value;

const addresses = (list: { address: string }[]): string[] => list.map(({ address }) => address);

let subjects = 0;
const subject = (): string => `Matter ${++subjects}`;

/** The copy of a message that its recipient got. */
function received(by: string, about: string, from: string): Promise<Read> {
  return until(async () => {
    const { data } = await call(lab.key, 'messages.list', {
      params: { identity_id: by },
      query: { direction: 'inbound' },
    });
    const found = data.find((entry) => entry.subject === about && entry.from?.address === from);
    if (found === undefined) throw new Error('not yet');
    return get(by, found.id);
  });
}

const at = (identity_id: string, { id: message_id }: { id: string }) => ({ identity_id, message_id });

describe('a conversation', () => {
  test('goes to and fro in one thread on each side, each message naming those before it', async () => {
    const about = subject();
    const first = await accepted(lab.key, lab.ann, letter({ to: [{ address: BOB, name: 'Bob' }], subject: about }));
    const asked = await received(lab.bob, about, ANN);
    expect(addresses(asked.reply_to)).toEqual([expect.stringMatching(ANN_THREAD)]);

    const reply = await answered(lab.key, 'messages.reply', at(lab.bob, asked), {
      text: 'Fine by me',
      html: '<p>Fine <i>by me</i></p>',
      labels: ['answered'],
      metadata: { step: '2' },
      headers: { 'X-Step': '2' },
    });
    expect(reply).toMatchObject({
      operation: 'reply',
      status: 'queued',
      thread_id: asked.thread_id,
      from: { address: BOB },
      to: asked.reply_to,
      cc: [],
      bcc: [],
      subject: `Re: ${about}`,
      in_reply_to: asked.rfc_message_id,
      kind: 'transactional',
      labels: ['answered'],
      metadata: { step: '2' },
      deduplicated: false,
    });
    const answer = await received(lab.ann, `Re: ${about}`, BOB);
    expect(answer).toMatchObject({
      thread_id: first.thread_id,
      in_reply_to: asked.rfc_message_id,
      trust: { flags: [], known_sender: true },
    });
    expect(header(answer, 'In-Reply-To')).toBe(`<${asked.rfc_message_id}>`);
    expect(header(answer, 'References')).toBe(`<${asked.rfc_message_id}>`);
    expect(header(answer, 'X-Pylota-Mail-Hop')).toBe('2');
    expect(header(answer, 'X-Step')).toBe('2');

    // The prefix stands once however often it is answered.
    const again = await answered(lab.key, 'messages.reply', at(lab.ann, answer), { text: 'Good' });
    expect(again).toMatchObject({
      thread_id: first.thread_id,
      subject: `Re: ${about}`,
      in_reply_to: answer.rfc_message_id,
    });
    const last = await received(lab.bob, `Re: ${about}`, ANN);
    expect(last.thread_id).toBe(asked.thread_id);
    expect(header(last, 'References')).toBe(`<${asked.rfc_message_id}> <${answer.rfc_message_id}>`);
    expect(header(last, 'X-Pylota-Mail-Hop')).toBe('3');

    const params = { identity_id: lab.bob, thread_id: asked.thread_id };
    const { messages } = await call(lab.key, 'threads.get', { params });
    expect(messages.map(({ id }) => id)).toEqual([asked.id, reply.id, last.id]);
    const events = await call(lab.key, 'events.list', { query: { identity_id: lab.bob, type: 'message.sent' } });
    expect(events.data.length).toBeGreaterThan(0);
  });

  test('is continued by a send that names the thread', async () => {
    const about = subject();
    const first = await accepted(lab.key, lab.ann, letter({ to: [BOB], subject: about }));
    const asked = await received(lab.bob, about, ANN);
    const second = await accepted(
      lab.key,
      lab.ann,
      letter({ to: [BOB], subject: `${about}, once more`, thread_id: first.thread_id }),
    );
    expect(second).toMatchObject({
      operation: 'send',
      thread_id: first.thread_id,
      subject: `${about}, once more`,
      in_reply_to: asked.rfc_message_id,
    });
    const next = await received(lab.bob, `${about}, once more`, ANN);
    // On the other side it is the same thread too, for it names the message before.
    expect(next.thread_id).toBe(asked.thread_id);
    expect(header(next, 'References')).toBe(`<${asked.rfc_message_id}>`);
  });

  test('answers what one has written oneself to those who got it, never to those who got it blindly', async () => {
    const about = subject();
    const body = letter({
      to: ['a@simulator.invalid', BOB],
      cc: [CID],
      bcc: [DOT, 'z@simulator.invalid'],
      subject: about,
    });
    const first = await accepted(lab.key, lab.ann, body);
    for (const route of ['messages.reply', 'messages.reply_all'] as const) {
      const next = await answered(lab.key, route, at(lab.ann, first));
      expect([addresses(next.to), addresses(next.cc), next.bcc]).toEqual([['a@simulator.invalid', BOB], [CID], []]);
      expect(next.thread_id).toBe(first.thread_id);
      expect(JSON.stringify(await get(lab.ann, next.id, 'headers,quoted,html'))).not.toMatch(/dot\.lab|z@simulator/);
    }
  });
});

describe('reply-all', () => {
  test('goes to the sender and everybody shown, without oneself and without those who got it blindly', async () => {
    const about = subject();
    const body = letter({ to: [BOB, 'a@simulator.invalid'], cc: [CID, BOB.toUpperCase()], bcc: [DOT], subject: about });
    await accepted(lab.key, lab.ann, body);
    const asked = await received(lab.bob, about, ANN);
    const reply = await answered(lab.key, 'messages.reply_all', at(lab.bob, asked));
    expect(reply.operation).toBe('reply_all');
    expect(addresses(reply.to)).toEqual([asked.reply_to[0]?.address, 'a@simulator.invalid']);
    expect(addresses(reply.cc)).toEqual([CID]);
    expect(reply.deliveries?.map(({ address }) => address)).not.toContain(DOT);

    // Who got it blindly may answer all, and gives away only that they got it.
    const copy = await received(dot, about, ANN);
    expect(copy).toMatchObject({ delivered_to: DOT, flags: expect.arrayContaining(['bcc']) as string[] });
    const blind = await answered(lab.key, 'messages.reply_all', at(dot, copy));
    expect(addresses(blind.to)).toEqual([copy.reply_to[0]?.address, BOB, 'a@simulator.invalid']);
    expect(addresses(blind.cc)).toEqual([CID]);
    const params = { identity_id: lab.bob, message_id: reply.id };
    const raw = await (await send(lab.key, 'messages.raw.get', { params })).text();
    expect(raw).not.toMatch(/dot\.lab|^bcc:/im);
  });

  test('a plain reply goes to the sender alone', async () => {
    const about = subject();
    await accepted(lab.key, lab.ann, letter({ to: [BOB], cc: [CID], subject: about }));
    const asked = await received(lab.bob, about, ANN);
    const reply = await answered(lab.key, 'messages.reply', at(lab.bob, asked));
    expect([reply.to.length, reply.cc, reply.bcc]).toEqual([1, [], []]);
    expect(reply.to[0]?.address).toMatch(ANN_THREAD);
  });
});

describe('whom an answer goes to', () => {
  const mail = (id: string, fields: string) =>
    arrive(id, `${fields}\nMessage-ID: <${crypto.randomUUID()}@x.example>\nSubject: ${subject()}\n\nHello`);

  test('is the Reply-To only where it is of the same house or one has written there', async () => {
    const own = await person(root, lab.tenant, 'careful');
    const led = await mail(own, 'From: a@simulator.invalid\nReply-To: cid.lab@agents.example');
    const plain = await answered(lab.key, 'messages.reply', { identity_id: own, message_id: led });
    expect(addresses(plain.to)).toEqual(['a@simulator.invalid']);
    const same = await mail(own, 'From: b@simulator.invalid\nReply-To: team@simulator.invalid');
    const housed = await answered(lab.key, 'messages.reply', { identity_id: own, message_id: same });
    expect(addresses(housed.to)).toEqual(['team@simulator.invalid']);
    await accepted(lab.key, own, letter({ to: [CID] }));
    const now = await mail(own, 'From: c@simulator.invalid\nReply-To: cid.lab@agents.example');
    const known = await answered(lab.key, 'messages.reply', { identity_id: own, message_id: now });
    expect(addresses(known.to)).toEqual([CID]);
  });

  test('outside a test tenant cannot be, whatever the message says', async () => {
    const id = await mail(lab.ann, 'From: real@example.com\nCc: a@simulator.invalid');
    for (const route of ['messages.reply', 'messages.reply_all'] as const) {
      const input = { params: { identity_id: lab.ann, message_id: id }, body: { text: 'x' } };
      const answer = await refusal(lab.key, route, { ...input, headers: { 'idempotency-key': 'real' } });
      expect(answer).toEqual({ code: 'test_mode_recipient', recipients: ['real@example.com'] });
    }
  });

  test('on the list of those who want no mail gets none, and the others do', async () => {
    const id = await mail(lab.ann, 'From: gone@simulator.invalid\nTo: ann.lab@agents.example, left@simulator.invalid');
    await suppressAddress(lab.tenant, 'gone@simulator.invalid', 'hard_bounce');
    const target = { identity_id: lab.ann, message_id: id };
    const alone = await answered(lab.key, 'messages.reply', target);
    expect(alone).toMatchObject({
      status: 'suppressed',
      deliveries: [{ status: 'suppressed', smtp_response: 'policy: suppression (hard_bounce)' }],
    });
    const all = await answered(lab.key, 'messages.reply_all', target);
    expect(all.deliveries?.map(({ address, status }) => [address, status])).toEqual([
      ['gone@simulator.invalid', 'suppressed'],
      ['left@simulator.invalid', 'queued'],
    ]);
  });

  test('cannot be said by the caller', async () => {
    const id = await mail(lab.ann, 'From: a@simulator.invalid');
    for (const route of ['messages.reply', 'messages.reply_all'] as const) {
      const body = { text: 'x', to: ['b@simulator.invalid'], bcc: ['c@simulator.invalid'] };
      const input = { params: { identity_id: lab.ann, message_id: id }, body, headers: { 'idempotency-key': 'to' } };
      expect(paths(await refusal(lab.key, route, input))).toEqual(['to', 'bcc']);
    }
  });
});

describe('a forward', () => {
  const FILES = [
    {
      filename: 'plan é.txt',
      content_type: 'text/plain',
      content_base64: toBase64(new TextEncoder().encode('the plan')),
    },
    { filename: 'logo.png', content_type: 'image/png', content_base64: 'iVBORw0KGgo=' },
  ];

  async function forwardable(): Promise<{ about: string; asked: Read }> {
    const about = subject();
    const body = letter({
      to: [BOB],
      subject: about,
      text: 'The plans',
      html: '<p>The <b>plans</b></p>',
      attachments: FILES,
    });
    await accepted(lab.key, lab.ann, body);
    return { about, asked: await received(lab.bob, about, ANN) };
  }

  test('carries text, note and files to others, in the thread of the message but as no answer to it', async () => {
    const { about, asked } = await forwardable();
    const body = { to: [CID], cc: ['a@simulator.invalid'], bcc: [DOT], text: 'Please look' };
    const forward = await answered(lab.key, 'messages.forward', at(lab.bob, asked), body);
    expect(forward).toMatchObject({
      operation: 'forward',
      thread_id: asked.thread_id,
      subject: `Fwd: ${about}`,
      in_reply_to: null,
      to: [{ address: CID }],
      cc: [{ address: 'a@simulator.invalid' }],
      bcc: [{ address: DOT }],
    });
    expect(forward.attachments.map(({ filename, size }) => [filename, size])).toEqual([
      ['plan é.txt', 8],
      ['logo.png', 8],
    ]);
    const got = await received(cid, `Fwd: ${about}`, BOB);
    expect(header(got, 'In-Reply-To')).toBeUndefined();
    expect(header(got, 'References')).toBe(`<${asked.rfc_message_id}>`);
    expect(header(got, 'X-Pylota-Mail-Hop')).toBe('2');
    const whole = await get(cid, got.id, 'quoted,html');
    expect(whole.text).toContain(
      'Please look\n\n---------- Forwarded message ---------\nFrom: ann <ann.lab@agents.example>',
    );
    expect(whole.text).toContain(`Subject: ${about}`);
    expect(whole.text).toContain('The plans');
    expect(whole.html).toContain('<b>plans</b>');
    const [file] = got.attachments;
    const params = { identity_id: cid, message_id: got.id, attachment_id: file?.id ?? '' };
    const bytes = await (await send(lab.key, 'messages.attachments.get', { params })).text();
    expect([file?.filename, bytes]).toEqual(['plan é.txt', 'the plan']);
  });

  test('leaves the files behind when it is to, or when they may be harmful', async () => {
    const { asked } = await forwardable();
    const body = { to: [CID], text: 'x' };
    const bare = await answered(lab.key, 'messages.forward', at(lab.bob, asked), {
      ...body,
      include_attachments: false,
    });
    expect(bare.attachments).toEqual([]);
    await inMailbox(lab.bob, "UPDATE attachments SET risk = 'macro' WHERE filename = 'logo.png'");
    const safe = await answered(lab.key, 'messages.forward', at(lab.bob, asked), {
      ...body,
      attachments: [{ filename: 'own.txt', content_type: 'text/plain', content_base64: '' }],
    });
    expect(safe.attachments.map(({ filename }) => filename)).toEqual(['own.txt', 'plan é.txt']);
    await inMailbox(lab.bob, 'UPDATE attachments SET risk = NULL');
  });

  test('that no longer fits puts links in the place of files, where the policy has them', async () => {
    const about = subject();
    const own = await makeLab(root, 'linking');
    const policy = { large_attachments: 'link' };
    await call(root, 'tenants.policy.update', { params: { tenant_id: own.tenant }, body: { policy } });
    const bytes = (n: number) => toBase64(new Uint8Array(n).fill(7));
    const file = (filename: string, n: number) => ({
      filename,
      content_type: 'application/octet-stream',
      content_base64: bytes(n),
    });
    const first = await accepted(
      own.key,
      own.ann,
      letter({ to: ['a@simulator.invalid'], subject: about, attachments: [file('three.bin', 3_000_000)] }),
    );
    const target = { identity_id: own.ann, message_id: first.id };
    const body = { to: ['b@simulator.invalid'], text: 'More', attachments: [file('four.bin', 4_000_000)] };
    const forward = await answered(own.key, 'messages.forward', target, body);
    const params = { identity_id: own.ann, message_id: forward.id };
    const raw = await send(own.key, 'messages.raw.get', { params });
    const mail = await parseMail(new Uint8Array(await raw.arrayBuffer()));
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(['three.bin']);
    const [, token = ''] = /\/v1\/links\/([\w-]+)/.exec(mail.text ?? '') ?? [];
    const linked = await send(null, 'links.get', { params: { token } });
    expect([linked.status, (await linked.arrayBuffer()).byteLength]).toEqual([200, 4_000_000]);
    await atRest(own.ann);
  });

  test('waits for files that have only just come', async () => {
    const { asked } = await forwardable();
    const key = `t/${lab.tenant}/i/${lab.bob}/m/${asked.id}/a/${asked.attachments[0]?.id ?? ''}`;
    const stored = await (await env.BLOBS.get(key))?.arrayBuffer();
    await env.BLOBS.delete(key);
    const input = {
      params: at(lab.bob, asked),
      body: { to: [CID], text: 'x' },
      headers: { 'idempotency-key': 'soon' },
    };
    expect(await refusal(lab.key, 'messages.forward', input)).toMatchObject({ code: 'unavailable' });
    await env.BLOBS.put(key, stored ?? '');
    const sent = await answered(lab.key, 'messages.forward', at(lab.bob, asked), { to: [CID], text: 'x' }, 'soon');
    expect(sent.deduplicated).toBe(false);
  });
});

test('an automatic reply answers a person, says what it is, and not for ever', async () => {
  const own = await person(root, lab.tenant, 'robot');
  const id = await arrive(own, 'From: a@simulator.invalid\nMessage-ID: <r@x.example>\nSubject: Robot\n\nAnybody?');
  const target = { identity_id: own, message_id: id };
  const automatic = { text: 'I am away', kind: 'auto_reply' };
  const first = await answered(lab.key, 'messages.reply', target, automatic);
  expect(first.kind).toBe('auto_reply');
  expect(header(await get(own, first.id), 'Auto-Submitted')).toBe('auto-replied');
  await answered(lab.key, 'messages.reply', target, automatic);
  const input = { params: target, body: automatic, headers: { 'idempotency-key': 'third' } };
  expect(await refusal(lab.key, 'messages.reply', input)).toEqual({ code: 'auto_reply_not_allowed' });
  // A person's own word begins the count anew.
  await answered(lab.key, 'messages.reply', target, { text: 'Here I am' });
  await answered(lab.key, 'messages.reply', target, automatic, 'third');
});
