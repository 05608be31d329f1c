import fc from 'fast-check';
import PostalMime, { type PostalMimeOptions } from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { type ParsedTree, type ParserWork, parseBounded } from './bounded-parser.ts';
import { createComposer } from './compose.ts';
import { COMPOSE_CASES } from './compose-cases.ts';
import { renderBodies, type TextParts } from './text-parts.ts';

const OPTIONS: PostalMimeOptions = { forceRfc822Attachments: true, attachmentEncoding: 'arraybuffer' };
const FROM = 'From: Jo <jo@example.net>\r\n';
const MIXED = `${FROM}Content-Type: multipart/mixed; boundary=b\r\n\r\n`;

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

/** What was read, the bytes of attachments as text, so that two results can be compared. */
function comparable({ headers, text, html, attachments }: ParsedTree): unknown {
  const files = attachments.map((part) => ({
    ...part,
    // Nobody reads it, so it is not decoded.
    description: undefined,
    content: Buffer.from(part.content as ArrayBuffer).toString('latin1'),
  }));
  return { headers, text: text || undefined, html: html || undefined, attachments: files };
}

/** What the parser reads by itself; only how it makes text of HTML may differ. */
function parsersOwn(raw: Uint8Array): Promise<ParsedTree> {
  const parser = new PostalMime(OPTIONS) as unknown as {
    textMap: Map<object, TextParts>;
    textContent: Record<string, string>;
    renderTextContent: () => void;
    parse: (raw: Uint8Array) => Promise<ParsedTree>;
  };
  const render = parser.renderTextContent.bind(parser);
  parser.renderTextContent = () => {
    render();
    const { text } = renderBodies([...parser.textMap.values()]);
    if (text !== undefined) parser.textContent['plain'] = text;
  };
  return parser.parse(raw);
}

async function expectTheSame(raw: Uint8Array): Promise<void> {
  const { email, cut, work } = await parseBounded(raw, OPTIONS);
  expect(cut).toBe(false);
  expect(work.body_lines).toBeLessThanOrEqual(1);
  expect(comparable(email)).toEqual(comparable(await parsersOwn(raw)));
}

describe('what is read is what the parser by itself reads', () => {
  it.each(COMPOSE_CASES.map((each) => [each.name, each] as const))('of %s', async (_name, { input }) => {
    const { mime } = await createComposer().compose(input);
    await expectTheSame(mime);
    await expectTheSame(latin1(Buffer.from(mime).toString('latin1').replaceAll('\r\n', '\n')));
  });

  const END = fc.constantFrom('\r\n', '\n', '\r\r\n', ' \r\n', '\r', '');
  const PIECE = fc.constantFrom(
    ...['--b', '--b--', '--b ', '--b\t \r', '--', '--x', '---b', '--a', '--a--', '--c d ', '-- '],
    ...['', 'x', 'hello world', ' y', '=', '=4', '=41', '=zz', 'a=', '=C3=BC=', '\xc3\xbc', '\xff', '\0', 'a\rb'],
    ...['YWJj', 'YWI=', 'YQ==', 'Y', 'YQ', 'YWI', '=', '-', 'Y=Q', '!!YW', 'a b c '],
    'Content-Type: multipart/mixed; boundary=a',
    'Content-Type: multipart/alternative; boundary="c d "',
    'Content-Type: text/html; charset=iso-8859-1',
    'Content-Type: text/plain; format=flowed; delsp=yes',
    'Content-Type: message/rfc822',
    'Content-Type: text/calendar; method=request',
    'Content-Type: application/pdf; name=x',
    'Content-Disposition: attachment',
    'Content-Transfer-Encoding: base64',
    'Content-Transfer-Encoding: quoted-printable',
    'Content-Transfer-Encoding: 8bit',
  );
  const TYPE = fc.constantFrom(
    ...['multipart/mixed; boundary=b', 'multipart/related; boundary="b "', 'multipart/mixed', 'text/plain', 'x'],
  );
  const ENCODING = fc.constantFrom('base64', 'quoted-printable', '7bit', 'BASE64 (x)');

  it('of messages with lines of any kind in any order', async () => {
    const lines = fc.array(fc.tuple(PIECE, END), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(TYPE, ENCODING, lines, async (type, encoding, body) => {
        const header = `${FROM}Content-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n`;
        await expectTheSame(latin1(header + body.flat().join('')));
      }),
      { numRuns: 3_000 },
    );
  });

  it('of any bytes', async () => {
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), expectTheSame), { numRuns: 500 });
  });
});

describe('what the parser is handed is bounded', () => {
  const HEAD = { header_lines: 3, delimiters: 0, body_lines: 1 };
  const PART = { header_lines: 5, delimiters: 1, body_lines: 1 };
  const encoded = (encoding: string) => `${FROM}Content-Transfer-Encoding: ${encoding}\r\n\r\n`;
  const part = (type: string) => `${MIXED}--b\r\nContent-Type: ${type}\r\n\r\n`;

  it.each<[string, string, string, ParserWork]>([
    ['blank lines of a text', `${FROM}X: y\r\n\r\n`, '\n', HEAD],
    ['lines of one character', `${FROM}X: y\r\n\r\n`, 'x\r\n', HEAD],
    ['lines of dashes without parts', `${FROM}X: y\r\n\r\n`, '--x\n', HEAD],
    ['lines of dashes in a part', part('text/plain'), '--x\n', PART],
    ['lines that nearly are delimiters', part('text/plain'), '--bb\n', PART],
    ['lines before the first part', `${MIXED}`, '\n', HEAD],
    ['lines behind the last part', `${MIXED}--b--\r\n`, '\n', { ...HEAD, delimiters: 1 }],
    ['quoted-printable', encoded('quoted-printable'), '=\n', HEAD],
    ['base64', encoded('base64'), 'x\n', HEAD],
    ['padding in base64', encoded('base64'), 'YQ=\n', HEAD],
    ['an attachment', part('application/pdf'), '\r\n', PART],
    ['the body of a nested message', part('message/rfc822'), '\n', PART],
    ['the header of a nested message', part('message/rfc822'), 'x\n', PART],
  ])('for %s', async (_name, head, line, work) => {
    const found = await parseBounded(latin1(head + line.repeat(300_000)), OPTIONS);
    expect(found).toMatchObject({ cut: false, work });
  });

  it('for header lines, of the message and of its parts', async () => {
    for (const line of ['x\n', 'a:b\n', ' folded\n']) {
      const message = await parseBounded(latin1(`${FROM}X: y\n${line.repeat(100_000)}\nbody`), OPTIONS);
      expect(message).toMatchObject({ cut: true, work: { header_lines: 20_001 } });
      expect(message.email.headers[0]).toMatchObject({ key: 'from', value: 'Jo <jo@example.net>' });
    }
    const parts = `--b\n${'a:b\n'.repeat(1_000)}\nx\n`.repeat(100);
    expect(await parseBounded(latin1(MIXED + parts), OPTIONS)).toMatchObject({
      cut: true,
      work: { header_lines: 20_001, delimiters: 20 },
    });
    const ordinary = await parseBounded(latin1(`${FROM}${'a:b\n'.repeat(19_000)}\nbody`), OPTIONS);
    expect(ordinary).toMatchObject({ cut: false, email: { text: 'body\n' } });
  });

  it.each(['--b\n', '--b\n\nx\n', '--b\r\n\r\n\r\n', '--b \t\n'])('for delimiters: %j', async (lines) => {
    const found = await parseBounded(latin1(MIXED + lines.repeat(50_000)), OPTIONS);
    expect(found).toMatchObject({ cut: true, work: { delimiters: 2_001 } });
    expect(found.work.header_lines).toBeLessThan(5_000);
  });

  it('for lines that are a delimiter but for white space at its end', async () => {
    const raw = `${FROM}Content-Type: multipart/mixed; boundary="b "\r\n\r\n${'--b\n'.repeat(50_000)}`;
    expect(await parseBounded(latin1(raw), OPTIONS)).toMatchObject({ cut: true, work: { delimiters: 2_001 } });
  });
});

describe('texts', () => {
  it('beyond 8 MiB are cut, files are not', async () => {
    const line = `${'x'.repeat(1_023)}\n`;
    const long = line.repeat(9_000);
    const text = await parseBounded(latin1(`${FROM}\n${long}`), OPTIONS);
    expect(text.cut).toBe(true);
    expect(text.email.text).toHaveLength(8 * 1024 * 1024);
    const file = await parseBounded(latin1(`${FROM}Content-Disposition: attachment\n\n${long}`), OPTIONS);
    expect(file.cut).toBe(false);
    expect(file.email.attachments[0]?.content).toMatchObject({ byteLength: long.length });
  });

  it('of several parts share the bound', async () => {
    const part = `--b\r\n\r\n${`${'x'.repeat(1_023)}\n`.repeat(3_000)}\n`;
    const found = await parseBounded(latin1(MIXED + part.repeat(4)), OPTIONS);
    expect(found.cut).toBe(true);
    expect(found.email.text?.length).toBeLessThan(8 * 1024 * 1024 + 10);
  });

  it('with too many flowed lines are left as they were sent', async () => {
    const flowed = `${FROM}Content-Type: text/plain; format=flowed\n\n`;
    const short = await parseBounded(latin1(flowed + 'a \nb\n'.repeat(1_000)), OPTIONS);
    expect(short).toMatchObject({ cut: false, email: { text: 'a b\n'.repeat(1_000) } });
    const long = 'a \nb\n'.repeat(150_000);
    expect(await parseBounded(latin1(flowed + long), OPTIONS)).toMatchObject({ cut: true, email: { text: long } });
  });
});
