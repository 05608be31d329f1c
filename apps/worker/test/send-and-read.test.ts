import { env } from 'cloudflare:workers';
import { sha256Hex } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  accepted,
  arrive,
  atRest,
  blockAddress,
  inMailbox,
  type Lab,
  letter,
  makeLab,
  person,
  stored,
  suppressAddress,
  watchQueues,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, eventsOf, makeKey, paths, refusal, send, sql } from './support.ts';

/** What was sent is read back as it was, by its parts and as a file. */

keepStorage();

let root: string;
let lab: Lab;

beforeAll(async () => {
  root = await deploy();
  lab = await makeLab(root);
});

afterEach(() => {
  vi.restoreAllMocks();
});

const get = (id: string, include?: string, identity_id: string = lab.ann) =>
  call(lab.key, 'messages.get', {
    params: { identity_id, message_id: id },
    ...(include === undefined ? {} : { query: { include } }),
  });
const download = (id: string, attachment?: string) =>
  send(lab.key, attachment === undefined ? 'messages.raw.get' : 'messages.attachments.get', {
    params: { identity_id: lab.ann, message_id: id, attachment_id: attachment ?? '' },
  });

const FULL = letter({
  to: [{ address: 'Delivered+Tag@Simulator.Invalid', name: 'Dana "D" Day' }, 'bob.lab@agents.example'],
  cc: ['c@simulator.invalid'],
  bcc: ['secret@simulator.invalid'],
  subject: 'Grüße, 世界 and =?utf-8?Q?x?=',
  text: 'Hello\nthere',
  html: '<p onclick="x()">Hello <b>there</b><script>alert(1)</script></p>',
  labels: ['work', 'a'],
  headers: { 'X-Ticket': '7', Importance: 'High' },
  metadata: { order: '42', note: 'é' },
  attachments: [
    { filename: 'naïve "é" 100%.txt', content_type: 'text/plain', content_base64: btoa('file one') },
    { filename: 'page.html', content_type: 'text/html', content_base64: btoa('<script>x</script>') },
    { filename: '../../etc/pass\r\nwd: x', content_type: 'application/x-sh', content_base64: '' },
  ],
});

describe('a message that was sent', () => {
  test('is answered, read and listed alike', async () => {
    const { deduplicated, ...sent } = await accepted(lab.key, lab.ann, FULL);
    expect(deduplicated).toBe(false);
    expect(sent).toMatchObject({
      identity_id: lab.ann,
      direction: 'outbound',
      status: 'queued',
      from: { address: 'ann.lab@agents.example', name: 'ann' },
      to: [
        { address: 'delivered+tag@simulator.invalid', name: 'Dana "D" Day' },
        { address: 'bob.lab@agents.example', name: '' },
      ],
      cc: [{ address: 'c@simulator.invalid', name: '' }],
      bcc: [{ address: 'secret@simulator.invalid', name: '' }],
      subject: FULL.subject,
      extracted_text: 'Hello\nthere',
      text: null,
      html: null,
      headers: null,
      labels: ['a', 'work'],
      kind: 'transactional',
      read: true,
      operation: 'send',
      trust: null,
      rfc_message_id: null,
      provider: null,
      flags: [],
      metadata: { order: '42', note: 'é' },
    });
    expect(sent.sent_at).toBe(sent.received_at);
    expect(sent.deliveries?.map(({ address, field, status }) => [address, field, status])).toEqual([
      ['delivered+tag@simulator.invalid', 'to', 'queued'],
      ['bob.lab@agents.example', 'to', 'queued'],
      ['c@simulator.invalid', 'cc', 'queued'],
      ['secret@simulator.invalid', 'bcc', 'queued'],
    ]);
    expect(sent.attachments.map(({ filename, content_type, size }) => [filename, content_type, size])).toEqual([
      ['naïve "é" 100%.txt', 'text/plain', 8],
      ['page.html', 'text/html', 18],
      ['passwd: x', 'application/x-sh', 0],
    ]);
    const read = await get(sent.id);
    const { data } = await call(lab.key, 'messages.list', { params: { identity_id: lab.ann } });
    const listed = data.find(({ id }) => id === sent.id);
    expect(listed).toEqual(read);
    // It may have left meanwhile, but what it says does not change.
    const changing = ['status', 'status_reason', 'provider', 'provider_message_id', 'rfc_message_id', 'deliveries'];
    const still = (message: object) => Object.entries(message).filter(([name]) => !changing.includes(name));
    expect(still(read)).toEqual(still(sent));
  });

  test('shows its larger parts when they are asked for', async () => {
    const { id } = await accepted(lab.key, lab.ann, FULL);
    expect(await get(id)).toMatchObject({ text: null, html: null, headers: null });
    expect(await get(id, 'quoted')).toMatchObject({ text: 'Hello\nthere', html: null, headers: null });
    expect(await get(id, 'html')).toMatchObject({ text: null, html: '<p>Hello <b>there</b></p>', headers: null });
    const all = await get(id, 'headers,html,quoted');
    expect(all).toMatchObject({ text: 'Hello\nthere', html: '<p>Hello <b>there</b></p>' });
    const header = (name: string) =>
      all.headers?.filter((field) => field.name.toLowerCase() === name).map(({ value }) => value);
    expect(header('x-ticket')).toEqual(['7']);
    expect(header('importance')).toEqual(['high']);
    expect(header('x-pylota-mail-hop')).toEqual(['1']);
    expect(header('subject')).toEqual([FULL.subject]);
    expect(header('bcc')).toEqual([]);
    const thread = { identity_id: lab.ann, thread_id: all.thread_id };
    const query = { include: 'headers,html,quoted' };
    const [message] = (await call(lab.key, 'threads.get', { params: thread, query })).messages;
    const parts = { text: 'Hello\nthere', html: '<p>Hello <b>there</b></p>', headers: all.headers };
    expect(message).toMatchObject(parts);
  });

  test('is downloaded as the bytes that were stored, which name no hidden recipient and no header but ours', async () => {
    const { id, thread_id: thread, received_at } = await accepted(lab.key, lab.ann, FULL);
    const response = await download(id);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'message/rfc822',
      'content-disposition': `attachment; filename="${id}.eml"; filename*=UTF-8''${id}.eml`,
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
      'cache-control': 'private, no-store',
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect(response.headers.get('content-length')).toBe(String(bytes.length));
    const [row] = await inMailbox(lab.ann, 'SELECT raw_sha256, raw_size FROM messages WHERE id = ?', id);
    expect(row).toEqual({ raw_sha256: await sha256Hex(bytes), raw_size: bytes.length });
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    expect(text).not.toMatch(/secret@|^wd:|^bcc:/im);
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    const object = await env.BLOBS.head(`t/${lab.tenant}/i/${lab.ann}/out/${id}.eml`);
    expect(object?.customMetadata).toEqual({
      tenant: lab.tenant,
      identity: lab.ann,
      message: id,
      operation: 'send',
      at: String(Date.parse(received_at)),
      sha256: await sha256Hex(bytes),
      kind: 'transactional',
      thread,
      thread_seq: expect.stringMatching(/^\d+$/) as string,
      // What the copy does not say and a restored mailbox must know again, in ASCII.
      bcc: '[["secret@simulator.invalid",""]]',
      labels: '["work","a"]',
      metadata: '{"order":"42","note":"\\u00e9"}',
      idem_key_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
  });

  test('gives its files for download, never to be shown or run', async () => {
    const { id, attachments } = await accepted(lab.key, lab.ann, FULL);
    const fetched = await Promise.all(attachments.map(({ id: attachment }) => download(id, attachment)));
    expect(fetched.map(({ status }) => status)).toEqual([200, 200, 200]);
    const shown = await Promise.all(
      fetched.map(async (response) => [response.headers.get('content-type'), await response.text()]),
    );
    expect(shown).toEqual([
      ['text/plain', 'file one'],
      ['application/octet-stream', '<script>x</script>'],
      ['application/octet-stream', ''],
    ]);
    for (const { headers } of fetched) {
      expect(headers.get('content-security-policy')).toBe('sandbox');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('private, no-store');
    }
    expect(fetched.map(({ headers }) => headers.get('content-disposition'))).toEqual([
      `attachment; filename="na_ve ___ 100_.txt"; filename*=UTF-8''na%C3%AFve%20%22%C3%A9%22%20100%25.txt`,
      `attachment; filename="page.html"; filename*=UTF-8''page.html`,
      `attachment; filename="passwd: x"; filename*=UTF-8''passwd%3A%20x`,
    ]);
  });
});

test('an identity on its way out is read, and no longer used', async () => {
  const own = await person(root, lab.tenant, 'leaver');
  const { id, thread_id } = await accepted(lab.key, own);
  await sql("UPDATE identities SET status = 'deleting' WHERE id = ?", own);
  const params = { identity_id: own, message_id: id, thread_id };
  for (const route of ['messages.list', 'messages.get', 'threads.list', 'threads.get'] as const) {
    await call(lab.key, route, { params });
  }
  expect((await send(lab.key, 'messages.raw.get', { params })).status).toBe(200);
  const before = await get(id, undefined, own);
  for (const [route, body] of [
    ['messages.update', { read: false }],
    ['messages.cancel', undefined],
  ] as const) {
    expect(await refusal(lab.key, route, { params, body })).toEqual({ code: 'identity_not_found' });
  }
  expect((await get(id, undefined, own)).read).toBe(before.read);
});

describe('a message that came in', () => {
  const RAW = `From: =?utf-8?Q?J=C3=B6rg?= <joerg@example.org>
To: Ann <ann.lab@agents.example>, other@example.org
Message-ID: <one@example.org>
Subject: Question
Date: Mon, 30 Nov 2026 09:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html

<p style="color:red">How <i>much</i>?</p><img src="https://tracker.example/x">
--b
Content-Type: image/svg+xml
Content-Disposition: attachment; filename*=UTF-8''%E2%82%AC.svg

<svg onload="x()"/>
--b--
`;

  test('is read with its parts, its file and its trust', async () => {
    const id = await arrive(lab.ann, RAW);
    const message = await get(id, 'html,headers,quoted');
    expect(message).toMatchObject({
      direction: 'inbound',
      status: 'received',
      from: { address: 'joerg@example.org', name: 'Jörg' },
      delivered_to: 'ann.lab@agents.example',
      is_primary_recipient: true,
      subject: 'Question',
      rfc_message_id: 'one@example.org',
      read: false,
      kind: 'normal',
      deliveries: null,
      operation: null,
      trust: { verdict: 'none', known_sender: false, quarantined: false },
      attachments: [{ filename: '€.svg', content_type: 'image/svg+xml', size: 20 }],
    });
    expect(message.html).toContain('<p>How <i>much</i>?</p>');
    expect(message.html).not.toContain('tracker');
    expect(message.text).toContain('How much?');
    expect(message.headers).toContainEqual({ name: 'Message-ID', value: '<one@example.org>' });
    const file = await download(id, message.attachments[0]?.id);
    expect(file.headers.get('content-type')).toBe('application/octet-stream');
    expect(file.headers.get('content-disposition')).toBe(
      `attachment; filename="_.svg"; filename*=UTF-8''%E2%82%AC.svg`,
    );
    expect(await file.text()).toContain('onload');
    expect(await (await download(id)).text()).toContain('Subject: Question\r\n');
  });

  test('keeps headers null when the raw form is gone', async () => {
    const id = await arrive(lab.ann, 'From: a@example.org\nSubject: Gone\n\nx');
    await env.BLOBS.delete(`t/${lab.tenant}/i/${lab.ann}/m/${id}/raw.eml`);
    expect((await get(id, 'headers')).headers).toBeNull();
  });

  test('is shown while held back only to a key that may review it and asks by name', async () => {
    const own = await person(root, lab.tenant, 'held');
    const id = await arrive(own, 'From: a@example.org\nSubject: Held\n\nx');
    const params = { identity_id: own };
    const blind = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: ['messages:read'] });
    const list = async (key: string, query = {}) =>
      (await call(key, 'messages.list', { params, query })).data.map((entry) => entry.id);
    for (const status of ['quarantined', 'hidden', 'throttled']) {
      await inMailbox(own, 'UPDATE messages SET status = ? WHERE id = ?', status, id);
      expect(await list(lab.key)).toEqual([]);
      expect(await list(lab.key, { status })).toEqual([id]);
      expect(await list(blind, { status })).toEqual([]);
      expect(await get(id, undefined, own)).toMatchObject({ status });
      const input = { params: { ...params, message_id: id } };
      for (const route of ['messages.get', 'messages.raw.get'] as const) {
        expect(await refusal(blind, route, input)).toEqual({ code: 'message_not_found' });
      }
    }
  });

  test('with a dangerous file gives it only to a key that may review', async () => {
    const id = await arrive(lab.ann, RAW.replace('Question', 'Risky').replace('<one@', '<two@'));
    const { attachments } = await get(id);
    await inMailbox(lab.ann, "UPDATE attachments SET risk = 'executable' WHERE id = ?", attachments[0]?.id ?? '');
    const permissions = ['attachments:read', 'messages:read'] as const;
    const blind = await makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: [...permissions] });
    const params = { identity_id: lab.ann, message_id: id, attachment_id: attachments[0]?.id ?? '' };
    expect(await refusal(blind, 'messages.attachments.get', { params })).toEqual({ code: 'attachment_not_found' });
    expect((await send(lab.key, 'messages.attachments.get', { params })).status).toBe(200);
  });
});

describe('labels and the read mark', () => {
  const patch = (id: string, body: object) =>
    call(lab.key, 'messages.update', { params: { identity_id: lab.ann, message_id: id }, body });
  const thread = (id: string) => call(lab.key, 'threads.get', { params: { identity_id: lab.ann, thread_id: id } });

  test('are changed, and the thread counts and shows them', async () => {
    const id = await arrive(lab.ann, 'From: a@example.org\nSubject: Label me\n\nx');
    const { thread_id } = await get(id);
    expect(await thread(thread_id)).toMatchObject({ unread_count: 1, labels: [] });
    expect(await patch(id, { labels_add: ['b', 'a', 'b'], read: true })).toMatchObject({
      labels: ['a', 'b'],
      read: true,
    });
    expect(await thread(thread_id)).toMatchObject({ unread_count: 0, labels: ['a', 'b'] });
    expect(await patch(id, { read: true, labels_remove: ['a', 'never'], labels_add: ['c'] })).toMatchObject({
      labels: ['b', 'c'],
    });
    expect(await thread(thread_id)).toMatchObject({ unread_count: 0, labels: ['b', 'c'] });
    // Removed before added, so one that is in both stays.
    expect(await patch(id, { labels_add: ['b'], labels_remove: ['b', 'c'], read: false })).toMatchObject({
      labels: ['b'],
      read: false,
    });
    expect(await thread(thread_id)).toMatchObject({ unread_count: 1, labels: ['b'] });
    expect(await patch(id, {})).toEqual(await get(id));
  });

  test('are at most 64', async () => {
    const { id } = await accepted(lab.key, lab.ann);
    const labels = Array.from({ length: LIMITS.labels_per_message_max }, (_, n) => `l${n}`);
    expect((await patch(id, { labels_add: labels })).labels).toHaveLength(64);
    const params = { identity_id: lab.ann, message_id: id };
    const answer = await refusal(lab.key, 'messages.update', { params, body: { labels_add: ['one'], read: false } });
    expect(paths(answer)).toEqual(['labels_add']);
    expect(await get(id)).toMatchObject({ read: true, labels: [...labels].sort() });
  });
});

describe('a dry run', () => {
  const dry = (body: object) =>
    call(lab.key, 'messages.send', { params: { identity_id: lab.ann }, query: { dry_run: 'true' }, body, status: 200 });

  test('says what would become of each recipient and stores nothing', async () => {
    await suppressAddress(lab.tenant, 'gone@simulator.invalid', 'hard_bounce');
    await blockAddress(lab.tenant, '@blocked.invalid');
    await atRest(lab.ann, lab.bob);
    const quiet = await person(root, lab.tenant, 'quiet');
    await atRest(quiet);
    const before = await stored();
    const { outbound } = watchQueues();
    const input = { params: { identity_id: quiet }, query: { dry_run: 'true' } };
    const body = { ...FULL, bcc: ['gone@simulator.invalid', 'secret@simulator.invalid'] };
    expect(await call(lab.key, 'messages.send', { ...input, body, status: 200 })).toEqual({
      would_send: true,
      recipients: [
        { address: 'delivered+tag@simulator.invalid', field: 'to', status: 'queued', reason: null },
        { address: 'bob.lab@agents.example', field: 'to', status: 'queued', reason: null },
        { address: 'c@simulator.invalid', field: 'cc', status: 'queued', reason: null },
        { address: 'gone@simulator.invalid', field: 'bcc', status: 'suppressed', reason: 'hard_bounce' },
        { address: 'secret@simulator.invalid', field: 'bcc', status: 'queued', reason: null },
      ],
    });
    const after = await stored();
    for (const part of [quiet, lab.tenant, 'audit_log', 'event_index']) expect(after[part]).toEqual(before[part]);
    expect((after['blobs'] as string[]).filter((key) => key.includes(quiet))).toEqual([]);
    expect(outbound.mock.calls.filter(([job]) => (job as { identity_id: string }).identity_id === quiet)).toEqual([]);
  });

  test('passes over caps and busy threads, which only a real send meets', async () => {
    const poor = await person(root, lab.tenant, 'poor', { send_policy: { daily_cap: 0 } });
    const input = { params: { identity_id: poor }, query: { dry_run: 'true' }, body: letter(), status: 200 };
    expect(await call(lab.key, 'messages.send', input)).toMatchObject({ would_send: true });
    expect(await dry(letter())).toMatchObject({ would_send: true });
  });
});

test('a message that may reach nobody is accepted, ends at once and uses nothing up', async () => {
  await suppressAddress(lab.tenant, 'lost@simulator.invalid', 'complaint');
  const own = await person(root, lab.tenant, 'hermit', { send_policy: { daily_cap: 0 } });
  const { outbound } = watchQueues();
  const sent = await accepted(lab.key, own, letter({ to: ['lost@simulator.invalid'] }));
  expect(sent.status).toBe('suppressed');
  expect(sent.deliveries).toMatchObject([{ status: 'suppressed', smtp_response: 'policy: suppression (complaint)' }]);
  expect((await eventsOf(own)).map(({ type }) => type)).toEqual(['identity.created', 'message.suppressed']);
  await atRest(own);
  expect(outbound.mock.calls.filter(([job]) => (job as { identity_id: string }).identity_id === own)).toEqual([]);
});
