import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createComposer } from './compose.ts';
import { COMPOSE_CASES } from './compose-cases.ts';
import { parseMail } from './parse.ts';

/** Lines to bytes, one byte per character, CRLF between. */
function mail(...lines: string[]): Uint8Array {
  return Buffer.from(`${lines.join('\r\n')}\r\n`, 'latin1');
}

const FROM = 'From: Jo <jo@example.net>';

describe('addresses', () => {
  it('are split before they are decoded', async () => {
    const found = await parseMail(
      mail(
        'From: =?ISO-8859-1?Q?M=FCller=2C_Jan?= <Jan@Example.NET>',
        'Reply-To: =?ISO-8859-1?B?TfxsbGVyLCBKYW4=?= <jan@example.net>',
        'To: "Office, \\"North\\"" <desk@acme.example.com>,',
        '\tkim@example.org (Kim, in a comment)',
        'Cc: =?utf-8?Q?evil=40example=2Eorg=3E=2C_=3Clee=40example=2Eorg?= <lee@example.org>',
        '',
        'x',
      ),
    );
    expect(found).toMatchObject({
      from: { address: 'jan@example.net', name: 'Müller, Jan' },
      reply_to: [{ address: 'jan@example.net', name: 'Müller, Jan' }],
      to: [{ address: 'desk@acme.example.com', name: 'Office, "North"' }, { address: 'kim@example.org' }],
      cc: [{ address: 'lee@example.org', name: 'evil@example.org>, <lee@example.org' }],
      multiple_from: false,
      parse_degraded: false,
    });
  });

  it('in groups are flattened, and an empty group is nobody', async () => {
    const found = await parseMail(
      mail(FROM, 'To: undisclosed-recipients:;', 'Cc: Team: Kim <kim@example.org>, lee@example.org;', '', 'x'),
    );
    expect(found.to).toEqual([]);
    expect(found.cc).toEqual([
      { address: 'kim@example.org', name: 'Kim' },
      { address: 'lee@example.org', name: '' },
    ]);
    expect(found.parse_degraded).toBe(false);
  });

  it('that are none are left out, of all fields of one name', async () => {
    const found = await parseMail(
      mail(FROM, 'To: nobody, <>, jö@example.org, a@b', 'To: Kim <KIM@Example.org>', 'Cc: ', '', 'x'),
    );
    expect(found.to).toEqual([{ address: 'kim@example.org', name: 'Kim' }]);
    expect(found.cc).toEqual([]);
    expect(found.parse_degraded).toBe(false);
  });

  it.each([
    ['two mailboxes', ['From: a@x.example, b@y.example'], 'a@x.example', true],
    ['two fields', ['From: a@x.example', 'From: b@y.example'], 'a@x.example', true],
    ['one that is unusable before one that is not', ['From: a@b, b@y.example'], 'b@y.example', true],
    ['none', ['To: a@x.example'], null, false],
    ['only a name', ['From: Jo'], null, false],
  ])('in From, %s: degraded', async (_name, lines, address, multiple_from) => {
    const found = await parseMail(mail(...lines, '', 'x'));
    expect(found.from?.address ?? null).toBe(address);
    expect(found).toMatchObject({ multiple_from, parse_degraded: true });
  });
});

describe('header fields', () => {
  it('have no byte order marks, at the start of an encoded-word or within', async () => {
    const found = await parseMail(
      mail(
        'From: =?utf-8?B?77u/SmVu?= =?utf-8?B?77u/77u/cw==?= <jo@example.org>',
        'Subject: =?utf-8?B?Y++7v2Q=?=',
        '',
        'x',
      ),
    );
    expect(found.from?.name).toBe('Jens');
    expect(found.subject).toBe('cd');
  });

  it('join a character that the sender cut over two encoded-words', async () => {
    const found = await parseMail(
      mail(
        'From: =?utf-8?Q?=E0=B8=82=E0=B8=AD=E0=B8=9A=E0=B8?= =?utf-8?Q?=84=E0=B8=B8=E0=B8=93?= <kim@example.net>',
        'Subject: =?UTF-8?Q?U=C5=BEsakymas=20patvirtinta=C5?=',
        ' =?UTF-8?Q?=A1=20iki=20rytojaus?=',
        '',
        'x',
      ),
    );
    expect(found.from?.name).toBe('ขอบคุณ');
    expect(found.subject).toBe('Užsakymas patvirtintaš iki rytojaus');
    expect(found.parse_degraded).toBe(false);
  });

  it.each([
    ['<root@example.net><own@acme.example.com>'],
    ['<root@example.net>,<own@acme.example.com>'],
    ['<root@example.net> (was: x <y@z>) <own@acme.example.com>'],
    ['<root@example.net>\r\n\t<own@acme.example.com>'],
    ['(a (nested) <n@n> comment) <root@EXAMPLE.net> <own@acme.example.com>'],
  ])('References %j are two ids', async (value) => {
    const found = await parseMail(mail(FROM, `References: ${value}`, `In-Reply-To: ${value}`, '', 'x'));
    expect(found.references).toEqual(['root@example.net', 'own@acme.example.com']);
    expect(found.in_reply_to).toEqual(found.references);
  });

  it('keep the parentheses of an id, and what stands behind one that opens no comment', async () => {
    const found = await parseMail(
      mail(FROM, 'Message-ID: <a(b@x.example>', 'References: (oops <c@x.example>', '', 'x'),
    );
    expect(found.message_id).toBe('a(b@x.example');
    expect(found.references).toEqual(['c@x.example']);
  });

  it('keep the last 200 references', async () => {
    const ids = Array.from({ length: 300 }, (_, i) => `<i${i}@x.example>`);
    const found = await parseMail(mail(FROM, `References: ${ids.join('\r\n ')}`, '', 'x'));
    expect(found.references).toHaveLength(200);
    expect(found.references.at(-1)).toBe('i299@x.example');
  });

  it('are absent as null, empty and zero', async () => {
    expect(await parseMail(mail(FROM, '', 'x'))).toMatchObject({
      subject: '',
      date: null,
      message_id: null,
      in_reply_to: [],
      references: [],
      hop: 0,
      auto_submitted: false,
    });
  });

  it('are listed in order, unfolded and decoded, with their spelling', async () => {
    const found = await parseMail(mail('X-B: 1', FROM, 'x-b: =?utf-8?Q?=C3=BC?=', 'X-Folded: a', '\tb', '', 'x'));
    expect(found.headers).toEqual([
      { name: 'X-B', value: '1' },
      { name: 'From', value: 'Jo <jo@example.net>' },
      { name: 'x-b', value: 'ü' },
      { name: 'X-Folded', value: 'a b' },
    ]);
  });

  it('never carry a line break, however it was encoded', async () => {
    const evil = '=?utf-8?Q?a=0D=0ABcc=3A_x=00?=';
    const found = await parseMail(mail(`From: ${evil} <jo@example.net>`, `Subject: ${evil}`, `X-A: ${evil}`, '', 'x'));
    expect([found.subject, found.from?.name, found.headers.at(-1)?.value]).toEqual([
      'a Bcc: x ',
      'a Bcc: x',
      'a Bcc: x ',
    ]);
  });

  it.each([
    [['3'], 3],
    [[' 12 '], 12],
    [['-1'], 0],
    [['1.5'], 0],
    [['many'], 0],
    [['9'.repeat(30)], 0],
    [['1', '4', 'x'], 4],
  ])('hop count of %j is %d', async (values, hop) => {
    const lines = values.map((value) => `X-Pylota-Mail-Hop: ${value}`);
    expect((await parseMail(mail(FROM, ...lines, '', 'x'))).hop).toBe(hop);
  });

  it.each([
    ['no', false],
    ['No; reason=x', false],
    ['', false],
    ['auto-replied', true],
    ['auto-generated; x=y', true],
    ['notable', true],
  ])('Auto-Submitted: %s is %s', async (value, auto_submitted) => {
    expect(await parseMail(mail(FROM, `Auto-Submitted: ${value}`, '', 'x'))).toMatchObject({ auto_submitted });
  });
});

describe('bodies', () => {
  it('of HTML alone leave text null', async () => {
    const found = await parseMail(mail(FROM, 'Content-Type: text/html; charset=utf-8', '', '<p>h</p>'));
    expect(found).toMatchObject({ text: null, html: '<p>h</p>\n' });
  });

  it('have \\n line ends, encoded or not', async () => {
    const base64 = Buffer.from('a\r\nb\rc').toString('base64');
    const found = await parseMail(mail(FROM, 'Content-Transfer-Encoding: base64', '', base64));
    expect(found.text).toBe('a\nb\nc');
  });

  it.each([
    ['iso-8859-1', '\xfc', 'ü', false],
    ['windows-1252', '\x80', '€', false],
    ['cp932', '\x93\xfa', '日', false],
    ['utf-8', '\xc3\xbc', 'ü', false],
    ['utf-8', '\xef\xbf\xbd', '\ufffd', false],
    ['utf-8', 'a\xffb', 'a\ufffdb', true],
  ])('in %s: %j', async (charset, body, text, parse_degraded) => {
    const found = await parseMail(mail(FROM, `Content-Type: text/plain; charset=${charset}`, '', body));
    expect(found.text?.trimEnd()).toBe(text);
    expect(found.parse_degraded).toBe(parse_degraded);
  });

  it('in a multipart without a boundary are read as text', async () => {
    const found = await parseMail(mail(FROM, 'Content-Type: multipart/mixed', '', 'still here'));
    expect(found).toMatchObject({ text: 'still here', parse_degraded: true });
    expect(await parseMail(mail(FROM, 'Content-Type: multipart/mixed', ''))).toMatchObject({ text: null });
  });

  it('marked as an attachment are none', async () => {
    const found = await parseMail(mail(FROM, 'Content-Disposition: attachment; filename=a.txt', '', 'x'));
    expect(found.text).toBeNull();
    expect(found.attachments.map((part) => part.filename)).toEqual(['a.txt']);
  });
});

describe('attachments', () => {
  function mixed(...parts: string[][]): Uint8Array {
    const body = parts.flatMap((part) => ['--b', ...part]);
    return mail(FROM, 'Content-Type: multipart/mixed; boundary=b', '', ...body, '--b--');
  }

  it('have safe names, never none', async () => {
    const types = [
      'Content-Disposition: attachment; filename="../../etc/pass\twd"',
      'Content-Type: application/pdf',
      "Content-Disposition: attachment; filename*=utf-8''%E2%80%AEgpj.exe%00",
      `Content-Disposition: attachment; filename="${'n'.repeat(300)}.pdf"`,
      'Content-Type: image/png; name="=?utf-8?Q?=C3=BC?=.png"',
    ];
    const found = await parseMail(mixed(...types.map((type) => [type, 'Content-ID: <c@x>', '', 'AAAA'])));
    expect(found.attachments.map((part) => part.filename)).toEqual([
      'passwd',
      'attachment.pdf',
      'gpj.exe',
      `${'n'.repeat(251)}.pdf`,
      'ü.png',
    ]);
  });

  it('tell inline parts and their ids', async () => {
    const found = await parseMail(
      mixed(
        ['Content-Type: image/png', 'Content-Disposition: inline', 'Content-ID: <logo@x>', '', 'x'],
        ['Content-Type: image/png', '', 'x'],
      ),
    );
    expect(found.attachments.map(({ disposition, content_id }) => [disposition, content_id])).toEqual([
      ['inline', 'logo@x'],
      ['attachment', null],
    ]);
  });

  it('that are messages stay closed and are named after their subject', async () => {
    const nested = ['Content-Type: message/rfc822', '', 'From: evil@example.org', 'Subject: Re: a/b', '', 'inner text'];
    const found = await parseMail(
      mixed(['', 'outer'], nested, ['Content-Type: message/rfc822', '', 'From: x@example.org', '', 'x']),
    );
    expect(found.text?.trim()).toBe('outer');
    expect(found.from?.address).toBe('jo@example.net');
    expect(found.attachments.map((part) => part.filename)).toEqual(['Re: a-b.eml', 'forwarded.eml']);
    expect(Buffer.from(found.attachments[0]?.content ?? []).toString()).toContain('inner text');
  });

  it.each([
    [['Subject: =?utf-8?Q?=C3=BCber?=', ' folded', '', 'x'], 'über folded.eml'],
    [['From: x@example.org', 'SUBJECT : spaced', '', 'x'], 'spaced.eml'],
    [['Subject: first', 'Subject: second', '', 'x'], 'first.eml'],
    [['X-Subject: x', ' Subject: part of the field above', '', 'Subject: text'], 'forwarded.eml'],
    [['Subject:', '', 'x'], 'forwarded.eml'],
    [['', 'Subject: text'], 'forwarded.eml'],
  ])('that are messages are named: %j', async (lines, filename) => {
    const found = await parseMail(mixed(['Content-Type: message/rfc822', '', ...lines]));
    expect(found.attachments.map((part) => part.filename)).toEqual([filename]);
  });

  it('beyond 500 are left out', async () => {
    const found = await parseMail(mixed(...Array.from({ length: 501 }, () => ['Content-Type: image/png', '', 'x'])));
    expect(found.attachments).toHaveLength(500);
    expect(found.parse_degraded).toBe(true);
  });
});

describe('hostile messages', () => {
  it('of parts without end are cut in good time', async () => {
    const cases = [
      ['boundary=b', '--b'],
      ['boundary="b"', '--b'],
      ['boundary="b "', '--b '],
      ['boundary*0=b', '--b'],
      ['boundary =\r\n b', '--b'],
      ['x="boundary=a"; boundary(c)=b', '--b'],
    ];
    for (const [parameter, delimiter] of cases) {
      const parts = `${delimiter}\r\n\r\nx\r\n`.repeat(300_000);
      const raw = mail(FROM, `Content-Type: multipart/mixed; ${parameter}`, '', parts);
      const started = performance.now();
      const found = await parseMail(raw);
      expect(found.parse_degraded).toBe(true);
      expect(found.text?.length).toBeLessThan(10_000);
      expect(performance.now() - started).toBeLessThan(3_000);
    }
  });

  it('that only have many lines of dashes are read whole', async () => {
    const lines = Array.from({ length: 5_000 }, (_, i) => `-- comment ${i}`).join('\n');
    const found = await parseMail(mail(FROM, '', lines));
    expect(found.text?.trimEnd()).toBe(lines);
    expect(found.parse_degraded).toBe(false);
  });

  function nested(depth: number): Uint8Array {
    const lines: string[] = [FROM, 'Subject: deep', 'Content-Type: multipart/mixed; boundary=b0', ''];
    for (let i = 0; i < depth; i++) lines.push(`--b${i}`, `Content-Type: multipart/mixed; boundary=b${i + 1}`, '');
    lines.push(`--b${depth}`, '', 'bottom');
    return mail(...lines);
  }

  it('nest up to 32 levels normally, up to 256 degraded, and beyond give the header only', async () => {
    expect(await parseMail(nested(30))).toMatchObject({ text: 'bottom\n', parse_degraded: false });
    expect(await parseMail(nested(100))).toMatchObject({ text: 'bottom\n', parse_degraded: true });
    expect(await parseMail(nested(300))).toMatchObject({ subject: 'deep', text: null, parse_degraded: true });
  });

  it('with header fields beyond any size give the first ones', async () => {
    const found = await parseMail(mail(FROM, 'Subject: big', ...Array(40_000).fill(`X-A: ${'x'.repeat(80)}`), '', 'x'));
    expect(found).toMatchObject({ subject: 'big', text: null, parse_degraded: true });
    expect(found.from?.address).toBe('jo@example.net');
  });

  it.each([
    ['nothing', ''],
    ['one line', 'hello'],
    ['only a body', '\r\nhello'],
    ['zeros', '\0'.repeat(1000)],
    ['colons', ':\r\n:\r\n\r\n:'],
    ['a header without an end', 'Subject: x'],
  ])('%s: read without failing', async (_name, text) => {
    const found = await parseMail(Buffer.from(text, 'latin1'));
    expect(found.from).toBeNull();
    expect(found.parse_degraded).toBe(true);
  });

  it('of any bytes are read without failing', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc.string({ unit: 'binary', maxLength: 300 }).map((text) => new TextEncoder().encode(text)),
    );
    await fc.assert(
      fc.asyncProperty(bytes, async (raw) => {
        expect(typeof (await parseMail(raw)).parse_degraded).toBe('boolean');
      }),
      { numRuns: 300 },
    );
  });

  it('that were a message and are damaged are read without failing', async () => {
    const sources = await Promise.all(COMPOSE_CASES.slice(0, 30).map(({ input }) => createComposer().compose(input)));
    const change = fc.tuple(
      fc.nat(),
      fc.constantFrom('\n', '\r\n\r\n', '--', '"', '(', '<', ':', '=?', '\0', '\xff', ''),
      fc.nat(40),
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(sources.length - 1), fc.array(change, { maxLength: 8 }), async (index, changes) => {
        let text = Buffer.from(sources[index]?.mime ?? []).toString('latin1');
        for (const [at, insert, remove] of changes) {
          const position = at % (text.length + 1);
          text = text.slice(0, position) + insert + text.slice(position + remove);
        }
        const found = await parseMail(Buffer.from(text, 'latin1'));
        expect(found.subject).not.toMatch(/[\r\n]/);
      }),
      { numRuns: 300 },
    );
  });
});
