import type { ComposeInput } from '@pmail/core/compose/types.ts';
import { describe, expect, it } from 'vitest';
import { createComposer } from './compose.ts';
import { SUBJECTS } from './compose-cases.ts';
import { parseMail } from './parse.ts';
import { attachment, bytes, composeInput, expectSoundWire, headerBlockOf, headerOf, textOf } from './test-support.ts';

async function compose(overrides: Partial<ComposeInput> = {}) {
  const mail = await createComposer().compose(composeInput(overrides));
  expectSoundWire(mail.mime);
  return mail;
}

/** Content types of the MIME tree, in the order of the message. */
function treeOf(entity: string): unknown {
  const end = entity.indexOf('\r\n\r\n');
  const headers = entity.slice(0, end).replaceAll('\r\n ', ' ');
  const type = /^Content-Type: ([^;\r\n]+)/im.exec(headers)?.[1] ?? '';
  const boundary = /boundary="([^"]+)"/.exec(headers)?.[1];
  if (boundary === undefined) return type;
  const parts = entity.slice(end + 2).split(`\r\n--${boundary}`);
  expect(parts.at(-1)).toMatch(/^--(?:\r\n)?$/);
  return [type, ...parts.slice(1, -1).map((part) => treeOf(part.slice(2)))];
}

const inline = attachment({
  content_type: 'image/png',
  disposition: 'inline',
  content_id: 'logo@x',
  filename: 'l.png',
});
const HTML = '<p><img src="cid:logo@x"></p>';

describe('the MIME tree', () => {
  const text = 'text/plain';
  const alternative = 'multipart/alternative';
  const related = ['multipart/related', 'text/html', 'image/png'];
  it.each<[string, Partial<ComposeInput>, unknown]>([
    ['text', {}, text],
    ['html', { text: null, html: '<p>x</p>' }, [alternative, text, 'text/html']],
    ['text and html', { html: '<p>x</p>' }, [alternative, text, 'text/html']],
    ['html with its image', { html: HTML, attachments: [inline] }, [alternative, text, related]],
    ['text with a file', { attachments: [attachment()] }, ['multipart/mixed', text, 'application/pdf']],
    [
      'everything',
      { html: HTML, attachments: [attachment(), inline, attachment()] },
      ['multipart/mixed', [alternative, text, related], 'application/pdf', 'application/pdf'],
    ],
    ['an inline part that no html shows', { attachments: [inline] }, ['multipart/mixed', text, 'image/png']],
    ['nothing', { text: null }, text],
  ])('of %s', async (_name, overrides, tree) => {
    expect(treeOf(textOf((await compose(overrides)).mime))).toEqual(tree);
  });

  it('names its parts: root type of related, disposition, Content-ID in brackets', async () => {
    const wire = textOf((await compose({ html: HTML, attachments: [inline] })).mime);
    expect(wire).toContain('Content-Type: multipart/related; type="text/html";\r\n boundary=');
    expect(wire).toContain('Content-ID: <logo@x>\r\nContent-Disposition: inline; filename="l.png"');
  });
});

describe('header fields', () => {
  it('come in one order, with fixed date and Message-ID, and without Bcc', async () => {
    const { mime, rfc_message_id } = await compose({
      reply_to: { address: 'desk+t1.ab@acme.example.com', name: '' },
      cc: [{ address: 'kim@example.net', name: 'Kim' }],
      in_reply_to: 'b@example.org',
      references: ['a@example.org', 'b@example.org'],
      auto_submitted: true,
      headers: [{ name: 'X-Ticket', value: '7' }],
    });
    expect(rfc_message_id).toBe('01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com');
    expect(headerBlockOf(mime).split('\r\n')).toEqual([
      'From: Acme Desk <desk@acme.example.com>',
      'Reply-To: desk+t1.ab@acme.example.com',
      'To: Jo <jo@example.org>',
      'Cc: Kim <kim@example.net>',
      'Subject: Your booking 4471',
      'Date: Mon, 30 Nov 2026 08:05:09 +0000',
      'Message-ID: <01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com>',
      'In-Reply-To: <b@example.org>',
      'References: <a@example.org> <b@example.org>',
      'Auto-Submitted: auto-replied',
      'X-Pylota-Mail-Hop: 1',
      'X-Ticket: 7',
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: 7bit',
    ]);
  });

  it.each(SUBJECTS.map((subject) => ({ subject })))('subject lines of at most 78: $subject', async ({ subject }) => {
    const { mime } = await compose({ subject });
    const lines = /^Subject:.*(?:\r\n .*)*/m.exec(headerBlockOf(mime))?.[0].split('\r\n') ?? [];
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78);
  });

  it('leave a long value readable up to the length of a line, and encode it beyond', async () => {
    const { mime } = await compose({
      headers: [
        { name: 'X-Json', value: `{"a":"${'b'.repeat(900)}"}` },
        { name: 'X-Huge', value: 'c'.repeat(1000) },
      ],
    });
    expect(headerOf(mime, 'X-Json')).toBe(`{"a":"${'b'.repeat(900)}"}`);
    expect(headerOf(mime, 'X-Huge')).toMatch(/^=\?UTF-8\?Q\?c+\?= =\?UTF-8/);
  });

  it('fold References between ids only', async () => {
    const references = Array.from({ length: 12 }, (_, i) => `${'r'.repeat(30 + i * 5)}@example.org`);
    const { mime } = await compose({ references });
    expect(headerOf(mime, 'References')).toBe(references.map((id) => `<${id}>`).join(' '));
    expect(headerBlockOf(mime)).not.toMatch(/=\?|References:\r\n/);
  });

  it('leave out ids that cannot be written', async () => {
    const { mime } = await compose({
      in_reply_to: 'bl\u00fc@example.org',
      references: [
        'a@example.org',
        'bad id@example.org',
        `${'x'.repeat(1100)}@example.org`,
        'x>\r\nBcc: <y',
        'no-at-sign',
      ],
    });
    expect(headerOf(mime, 'In-Reply-To')).toBeUndefined();
    expect(headerOf(mime, 'References')).toBe('<a@example.org> <no-at-sign>');
  });

  it('write unsubscribe URLs as they are, folded after the comma', async () => {
    const url = `https://acme.example.com/u?t=${'k'.repeat(200)}&m=1`;
    const { mime } = await compose({ unsubscribe: { url, mailto: 'u@acme.example.com' } });
    expect(headerBlockOf(mime)).toContain(`List-Unsubscribe: <${url}>,\r\n <mailto:u@acme.example.com>\r\n`);
    expect(headerOf(mime, 'List-Unsubscribe-Post')).toBe('List-Unsubscribe=One-Click');
  });

  it('break an unsubscribe URL only where a line could not hold it', async () => {
    const url = `https://acme.example.com/${'k'.repeat(1900)}`;
    const { mime } = await compose({ list_unsubscribe: { url } });
    expect(headerOf(mime, 'List-Unsubscribe')?.replaceAll(' ', '')).toBe(`<${url}>`);
  });

  it('encode a name that looks encoded, so that it comes back as it was', async () => {
    const name = '=?utf-8?Q?x?=';
    const { mime } = await compose({ from: { address: 'desk@acme.example.com', name } });
    expect(headerBlockOf(mime)).not.toContain(name);
    expect((await parseMail(mime)).from?.name).toBe(name);
  });
});

describe('bodies', () => {
  it('are returned as assembled, with the text derived from html', async () => {
    const mail = await compose({
      text: null,
      html: '<p onclick="x()">Hi <script>evil()</script><b>Jo</b></p>',
      signature: { text: 'Acme\nDesk', html: null },
    });
    expect(mail.text).toBe('Hi Jo\n\n-- \nAcme\nDesk');
    expect(mail.html).toBe('<p onclick="x()">Hi <script>evil()</script><b>Jo</b></p><br><br>-- <br>Acme<br>Desk');
    expect(mail.html_sanitized).toBe('<p>Hi <b>Jo</b></p><br /><br />-- <br />Acme<br />Desk');
  });

  it('have no HTML when none was given', async () => {
    expect(await compose()).toMatchObject({ html: null, html_sanitized: null });
  });

  it.each([
    ['short ASCII lines', 'Hello\nJo', '7bit'],
    ['a long line', 'x'.repeat(77), 'quoted-printable'],
    ['mostly Latin text', 'Grüße an alle Kunden in Köln und München', 'quoted-printable'],
    ['another script', 'Здравствуйте', 'base64'],
    ['a control character', 'a\u0000b', 'quoted-printable'],
    ['its own delimiter', 'x\n--=_01jd9q3v7m8x2c4n6b5k1r0e9t_a\n', 'quoted-printable'],
  ])('%s: %s is sent as %s', async (_name, text, encoding) => {
    expect(headerOf((await compose({ text })).mime, 'Content-Transfer-Encoding')).toBe(encoding);
  });
});

describe('attachments', () => {
  const nested = (text: string) =>
    attachment({ filename: 'm.eml', content_type: 'message/rfc822', content: new TextEncoder().encode(text) });

  it('a plain nested message stays one', async () => {
    const { mime } = await compose({ attachments: [nested('Subject: x\n\nbody\n')] });
    expect(textOf(mime)).toContain('Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 7bit\r\n');
    expect(textOf(mime)).toContain('\r\n\r\nSubject: x\r\n\r\nbody\r\n');
  });

  it.each([
    ['8-bit', 'Subject: x\n\nbödy\n'],
    ['long-lined', `Subject: x\n\n${'y'.repeat(999)}\n`],
    ['with our delimiter', 'Subject: x\n\n--=_01jd9q3v7m8x2c4n6b5k1r0e9t_m--\n'],
    ['empty', ''],
  ])('a nested message that is %s goes as an opaque file', async (_name, text) => {
    const file = nested(text);
    const { mime } = await compose({ attachments: [file] });
    const [part] = (await parseMail(mime)).attachments;
    expect(part).toMatchObject({ filename: 'm.eml', content_type: 'application/octet-stream' });
    expect(Buffer.from(part?.content ?? []).equals(Buffer.from(file.content))).toBe(true);
  });

  it('no other composite type, and nothing that is no type, is written', async () => {
    const types = ['multipart/mixed', 'message/partial', 'text/plain\r\nX-Evil: 1', 'image/png; name="x"', ''];
    const { mime } = await compose({ attachments: types.map((content_type) => attachment({ content_type })) });
    const found = (await parseMail(mime)).attachments.map((part) => part.content_type);
    expect(found).toEqual(types.map(() => 'application/octet-stream'));
  });

  it('a view into a larger buffer gives only its own bytes', async () => {
    const { mime } = await compose({ attachments: [attachment({ content: bytes(400).subarray(100, 103) })] });
    const [part] = (await parseMail(mime)).attachments;
    expect([...(part?.content ?? [])]).toEqual([...bytes(103).subarray(100)]);
  });
});

describe('injection', () => {
  const evil = 'x\r\nBcc: evil@example.net\r\n\r\nbody\u2028\u0000';

  it('adds no header field and no part', async () => {
    const clean = await compose({
      headers: [{ name: 'X-A', value: 'v' }],
      cc: [{ address: 'kim@example.net', name: 'Kim' }],
      attachments: [attachment({ content_id: 'c' })],
    });
    const { mime } = await compose({
      from: { address: 'desk@acme.example.com', name: evil },
      to: [{ address: 'jo@example.org', name: evil }],
      cc: [{ address: 'kim@example.net', name: `"${evil}` }],
      subject: evil,
      headers: [{ name: 'X-A:\r\nBcc', value: evil }],
      attachments: [attachment({ filename: evil, content_id: `c>${evil}` })],
    });
    const names = (wire: Uint8Array) => [...headerBlockOf(wire).matchAll(/^([^\s:]+):/gm)].map((match) => match[1]);
    expect(names(mime)).toEqual(names(clean.mime).map((name) => (name === 'X-A' ? 'X-ABcc' : name)));
    const mail = await parseMail(mime);
    expect(mail.to).toEqual([{ address: 'jo@example.org', name: 'x Bcc: evil@example.net body' }]);
    expect(mail.subject).toBe('x Bcc: evil@example.net body ');
    expect(mail.attachments).toHaveLength(1);
  });

  it('through a forwarded message stays in the body', async () => {
    const { mime } = await compose({
      forwarded: {
        from: { address: 'a@b.example', name: evil },
        sent_at: 0,
        subject: evil,
        to: [],
        text: evil,
        html: null,
      },
    });
    expect(headerBlockOf(mime)).not.toContain('evil');
  });

  it.each([
    'b@x.example>\r\nBcc: <evil@example.net',
    'a@b.example, evil@example.net',
    'no address',
    '',
    'jö@example.org',
  ])('by an address is refused: %j', async (address) => {
    const mail = createComposer().compose(composeInput({ to: [{ address, name: '' }] }));
    await expect(mail).rejects.toThrow(TypeError);
  });
});
