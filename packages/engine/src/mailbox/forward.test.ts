import type { MessageId } from '@pmail/core/ids.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arriveRaw, bytesOf, copyOf, forward, refusalOf, sentTo } from './answers.fixture.ts';
import { arrive, DESK } from './inbound.fixture.ts';
import { KIM, LEE, MailboxRig, MINUTE, type SendOptions } from './mailbox.fixture.ts';
import { accepted, attempt } from './transport.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

const HEAD = [
  'From: Brightwell Leeds <accounts@brightwell.example>',
  `To: Desk <${DESK}>, Kim <${KIM}>`,
  'Cc: lee@example.org',
  'Subject: =?utf-8?Q?Invoice_88213_=E2=80=93_AB12?=',
  'Message-ID: <inv@brightwell.example>',
  'Date: Mon, 14 Sep 2026 09:12:00 +0100',
  'MIME-Version: 1.0',
];

const PLAIN = [...HEAD, 'Content-Type: text/plain; charset=utf-8', '', 'Please pay <b>by Friday</b>.', '--', 'Leeds'];

const HTML = [
  ...HEAD,
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p onclick="x()">Please pay <b>by Friday</b>.</p><script>evil()</script>',
];

function part(type: string, disposition: string, content: string, id?: string): string[] {
  return [
    '--b',
    `Content-Type: ${type}`,
    `Content-Disposition: ${disposition}`,
    ...(id === undefined ? [] : [`Content-ID: <${id}>`]),
    'Content-Transfer-Encoding: base64',
    '',
    btoa(content),
  ];
}

const WITH_FILES = [
  ...HEAD,
  'Content-Type: multipart/mixed; boundary="b"',
  '',
  '--b',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>See <img src="cid:logo@brightwell.example"></p>',
  ...part('application/pdf; name="invoice.pdf"', 'attachment; filename="invoice.pdf"', 'the invoice'),
  ...part('image/png', 'inline; filename="logo.png"', 'the logo', 'logo@brightwell.example'),
  ...part('application/x-msdownload', 'attachment; filename="pay.exe"', 'a program'),
  '--b--',
];

const NOTE = [
  '---------- Forwarded message ---------',
  'From: Brightwell Leeds <accounts@brightwell.example>',
  'Date: Mon, 14 Sep 2026 08:12:00 +0000',
  'Subject: Invoice 88213 – AB12',
  `To: Desk <${DESK}>, Kim <${KIM}>`,
];

async function arrived(lines: string[]): Promise<MessageId> {
  rig.clock.now += MINUTE;
  return (await arriveRaw(rig, lines)).message_id;
}

async function files(id: MessageId): Promise<Record<string, string>> {
  const copy = await copyOf(rig, id);
  return Object.fromEntries(
    copy.attachments.map(({ filename, content }) => [filename ?? '', Buffer.from(content).toString()]),
  );
}

const norm = (text: string | null | undefined): string => (text ?? '').replaceAll('\r\n', '\n').trimEnd();

describe('a forward', () => {
  test('of plain mail: the text, the note, the original', async () => {
    const { id } = await rig.send(forward(await arrived(PLAIN), { body: { text: 'Please look at this.' } }));
    const text = ['Please look at this.', '', ...NOTE, '', 'Please pay <b>by Friday</b>.', '--', 'Leeds'].join('\n');
    expect(norm(rig.message(id).text)).toBe(text);
    const copy = await copyOf(rig, id);
    expect(norm(copy.text)).toBe(text);
    expect(copy.html).toBeNull();
  });

  test('of HTML mail keeps its HTML, made safe, in a quote behind the note', async () => {
    const { id } = await rig.send(forward(await arrived(HTML), { body: { text: 'Look:\n<b>' } }));
    const copy = await copyOf(rig, id);
    expect(norm(copy.html)).toBe(
      `<p>Look:<br>&lt;b&gt;</p><br><br>${NOTE.map((line) => line.replaceAll('<', '&lt;').replaceAll('>', '&gt;')).join('<br>')}` +
        '<br><br><blockquote><p>Please pay <b>by Friday</b>.</p>\n</blockquote>',
    );
    expect(norm(copy.text)).toBe(['Look:', '<b>', '', ...NOTE, '', 'Please pay by Friday.'].join('\n'));
    expect(bytesOf(rig, id)).not.toContain('evil');
  });

  test('with HTML of its own shows plain mail in it, escaped', async () => {
    const { id } = await rig.send(forward(await arrived(PLAIN), { body: { text: undefined, html: '<p>Look</p>' } }));
    const copy = await copyOf(rig, id);
    expect(copy.html).toContain('<p>Look</p><br><br>---------- Forwarded message');
    expect(copy.html).toContain(
      '<blockquote><p>Please pay &lt;b&gt;by Friday&lt;/b&gt;.<br>--<br>Leeds<br></p></blockquote>',
    );
    expect(norm(copy.text)).toMatch(/^Look\n\n-{10} Forwarded message/);
  });

  test('without a word of its own begins with the note', async () => {
    const { id } = await rig.send(forward(await arrived(PLAIN), { body: { text: undefined } }));
    expect(norm((await copyOf(rig, id)).text).startsWith(NOTE.join('\n'))).toBe(true);
  });

  test('has signature and disclosure behind the original (R26)', async () => {
    const { id } = await rig.send(
      forward(await arrived(PLAIN), {
        body: { text: 'Look.' },
        identity: { signature_text: 'Acme Desk' },
        policy: { ai_disclosure: { mode: 'footer', text: 'Written with AI.' } },
      }),
    );
    const text = norm((await copyOf(rig, id)).text);
    const places = ['Look.', 'Forwarded message', 'Leeds', '-- \nAcme Desk', 'Written with AI.'].map((at) =>
      text.lastIndexOf(at),
    );
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places[0]).toBe(0);
  });

  test('goes to whom its body names, in the thread of the original, and takes its lock', async () => {
    const target = await arrived(PLAIN);
    const message = await rig.send(forward(target, { body: { to: [LEE], cc: [KIM], bcc: ['boss@example.org'] } }));
    expect(sentTo(message)).toEqual([`to ${LEE}`, `cc ${KIM}`, 'bcc boss@example.org']);
    expect(message).toMatchObject({ operation: 'forward', thread_id: rig.message(target).thread_id });
    expect(message.subject).toBe('Fwd: Invoice 88213 – AB12');
    expect(rig.sql.all('SELECT lock_owner FROM threads')).toEqual([{ lock_owner: message.id }]);
    expect(rig.rows('threads')).toBe(1);
    expect(bytesOf(rig, message.id)).not.toContain('boss@');
  });

  test('of what we sent has its note, and never names who was in bcc', async () => {
    const first = await rig.send({ body: { to: [LEE], bcc: ['boss@example.org'], text: 'Hello' } });
    await attempt(rig, first.id, accepted());
    const { id } = await rig.send(forward(first.id, { body: { to: [KIM] } }));
    const text = norm((await copyOf(rig, id)).text);
    expect(text).toContain(`From: Acme Desk <${DESK}>`);
    expect(text).toContain(`To: ${LEE}\n`);
    expect(bytesOf(rig, id)).not.toContain('boss@');
  });

  test('of mail without sender, subject or text still has its note', async () => {
    const { message_id } = await arrive(rig, {
      parsed: { from: null, subject: '', text: null, to: [], sent_at: null },
    });
    const message = await rig.send(forward(message_id, { body: { text: undefined } }));
    expect(message.subject).toBe('Fwd: (no subject)');
    expect(norm((await copyOf(rig, message.id)).text)).toMatch(
      /^-{10} Forwarded message -{9}\nFrom:\s+Date: Mon, 30 Nov 2026/,
    );
  });
});

describe('files of the original', () => {
  test('go along with a forward, with name, type, place in the HTML and bytes', async () => {
    const { id } = await rig.send(forward(await arrived(WITH_FILES)));
    expect(await files(id)).toEqual({ 'invoice.pdf': 'the invoice', 'logo.png': 'the logo', 'pay.exe': 'a program' });
    const copy = await copyOf(rig, id);
    expect(copy.attachments.find(({ filename }) => filename === 'logo.png')).toMatchObject({
      disposition: 'inline',
      content_id: 'logo@brightwell.example',
      content_type: 'image/png',
    });
    expect(copy.html).toContain('<img src="cid:logo@brightwell.example"');
    const own = rig.message(id).attachments;
    expect(own.map(({ filename, size }) => [filename, size])).toEqual([
      ['invoice.pdf', 11],
      ['logo.png', 8],
      ['pay.exe', 9],
    ]);
    for (const { id: file } of own) {
      const found = rig.engine.attachmentLocation(id, file, false);
      expect(found?.r2_key).toContain(id);
      expect(rig.blobs.objects.has(found?.r2_key ?? '')).toBe(true);
    }
  });

  test('that carry a risk stay behind', async () => {
    const target = await arrived(WITH_FILES);
    rig.sql.run("UPDATE attachments SET risk = 'executable' WHERE filename = 'pay.exe'");
    const { id } = await rig.send(forward(target));
    expect(await files(id)).toEqual({ 'invoice.pdf': 'the invoice', 'logo.png': 'the logo' });
    expect(bytesOf(rig, id)).not.toContain('pay.exe');
  });

  test('stay behind where the forward asks for that', async () => {
    const { id } = await rig.send(forward(await arrived(WITH_FILES), { body: { include_attachments: false } }));
    expect(await files(id)).toEqual({});
    expect(rig.message(id).attachments).toEqual([]);
    expect(rig.blobs.gets.calls).toBe(0);
    expect(norm((await copyOf(rig, id)).text)).toContain('Forwarded message');
  });

  test('come behind those of the forward itself', async () => {
    const attachments = [{ filename: 'note.txt', content_type: 'text/plain', content_base64: btoa('my note') }];
    const { id } = await rig.send(forward(await arrived(WITH_FILES), { body: { attachments } }));
    expect(rig.message(id).attachments.map(({ filename }) => filename)).toEqual([
      'note.txt',
      'invoice.pdf',
      'logo.png',
      'pay.exe',
    ]);
  });

  test('of what we sent go along too', async () => {
    const attachments = [{ filename: 'note.txt', content_type: 'text/plain', content_base64: btoa('my note') }];
    const first = await rig.send({ body: { attachments } });
    await attempt(rig, first.id, accepted());
    expect(await files((await rig.send(forward(first.id))).id)).toEqual({ 'note.txt': 'my note' });
  });

  test('that are gone are named in the text, and the others go along', async () => {
    const target = await arrived(WITH_FILES);
    const [pdf] = rig.message(target).attachments;
    const location = rig.engine.attachmentLocation(target, pdf?.id ?? 'att_', false);
    await rig.blobs.delete([location?.r2_key ?? '']);
    rig.clock.now += 5 * MINUTE;
    const { id } = await rig.send(forward(target));
    expect(Object.keys(await files(id))).toEqual(['logo.png', 'pay.exe']);
    expect(norm((await copyOf(rig, id)).text)).toMatch(/\[attachment no longer stored: invoice\.pdf\]$/);
  });

  test('of mail that has only just come may be on their way: the forward is to be repeated', async () => {
    const target = await arrived(WITH_FILES);
    const keys = rig.blobs.keys;
    const taken = keys.map((key) => [key, rig.blobs.objects.get(key)] as const);
    await rig.blobs.delete(keys);
    const options: SendOptions = { key: 'k-1', ...forward(target) };
    expect(await rig.submit(options)).toMatchObject({ code: 'unavailable', details: { step: 'not_stored_yet' } });
    expect(await rig.dryRun(options)).toMatchObject({ code: 'unavailable' });
    expect(rig.quotaBooks).toMatchObject({ held: 0, counted: 0 });
    for (const [key, object] of taken) if (object !== undefined) rig.blobs.objects.set(key, object);
    const answer = await rig.submit(options);
    expect(answer).toMatchObject({ ok: true, deduplicated: false });
  });

  test('make a forward too large: it is refused, or they are linked where the policy says so', async () => {
    const target = await arrived(WITH_FILES);
    const [pdf] = rig.message(target).attachments;
    const location = rig.engine.attachmentLocation(target, pdf?.id ?? 'att_', false);
    rig.blobs.objects.set(location?.r2_key ?? '', { bytes: new Uint8Array(4_500_000).fill(7), metadata: {} });
    expect(refusalOf(await rig.submit(forward(target))).code).toBe('message_too_large');
    const { id } = await rig.send(forward(target, { policy: { large_attachments: 'link' } }));
    const copy = await copyOf(rig, id);
    expect(copy.attachments.map(({ filename }) => filename)).toEqual(['logo.png', 'pay.exe']);
    expect(norm(copy.text)).toMatch(
      /^For you\.\n\ninvoice\.pdf \(4\.5 MB\): https:\/\/api\.agents\.example\/v1\/links\/\S+ \(available until 2026-12-03T09:\d\d:\d\d\.000Z\)\n\n-{10} Forwarded/,
    );
  });

  test('together with its own are at most 32', async () => {
    const target = await arrived([
      ...HEAD,
      'Content-Type: multipart/mixed; boundary="b"',
      '',
      ...Array.from({ length: 32 }, (_, i) =>
        part('text/plain', `attachment; filename="f${i}.txt"`, `file ${i}`),
      ).flat(),
      '--b--',
    ]);
    const attachments = [{ filename: 'note.txt', content_type: 'text/plain', content_base64: btoa('my note') }];
    for (const ask of [
      rig.submit(forward(target, { body: { attachments } })),
      rig.dryRun(forward(target, { body: { attachments } })),
    ]) {
      expect(await ask).toMatchObject({
        code: 'invalid_request',
        details: { errors: [{ path: 'include_attachments' }] },
      });
    }
    const all = await rig.send(forward(target));
    expect(Object.keys(await files(all.id))).toHaveLength(32);
    await attempt(rig, all.id, accepted());
    const { id } = await rig.send(forward(target, { body: { attachments, include_attachments: false } }));
    expect(Object.keys(await files(id))).toEqual(['note.txt']);
  });
});
