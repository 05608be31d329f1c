import { describe, expect, test } from 'vitest';
import { htmlToText } from './html-to-text.ts';
import { parseMailDate } from './mail-date.ts';
import { parseMail } from './parse.ts';
import { sanitizeHtml } from './sanitize.ts';

/**
 * Long runs of one thing with something behind them, as anybody can send them. What looks at the rest of a run from
 * each of its characters takes minutes for these, which no test is given.
 */
const LENGTH = 300_000;

function run(unit: string, length = LENGTH): string {
  return unit.repeat(Math.ceil(length / unit.length));
}

const BLANKS = [' ', '\t', '\n', '\r\n', '&nbsp;', ' \n', '\u3000'];

describe('HTML', () => {
  const read = (html: string) => htmlToText(sanitizeHtml(html));

  test.each(BLANKS)('with %j in preformatted text keeps what is behind it', (blank) => {
    expect(read(`<pre>x${run(blank)}y</pre>`)).toMatch(/^x\s+y$/);
    expect(read(`<blockquote><pre>x${run(blank)}y</pre></blockquote>`)).toMatch(/^> x[\s>]+y$/);
    expect(read(`<ul><li><pre>x${run(blank)}y</pre></ul>`)).toMatch(/^- x\s+y$/);
    expect(read(`<table><tr><td><pre>x${run(blank)}y</pre></table>`)).toMatch(/^x\s+y$/);
  });

  test.each([...BLANKS, '<!---->', '<!-- -->', '< !---->', '&lt;!---->', '"', '/', '\0'])(
    'with %j in a link',
    (unit) => {
      const url = `http://x${run(unit, 1_000_000)}y`;
      expect(sanitizeHtml(`<a href='${url}' title='${url}'>t</a>`)).toContain('t</a>');
      expect(sanitizeHtml(`<img src='cid:${url}' alt='${url}'>`)).toContain('alt="http://x');
      expect(sanitizeHtml(`<p href='${url}' lang='${url}'>t</p>`)).toContain('t</p>');
    },
  );
});

describe('a Date', () => {
  test.each([' ', '\t', ',', ' ,', 'a', '(', '()', '\\', '1', '-'])('with %j', (unit) => {
    for (const start of ['Mon', 'Mon,', 'Mon, 30', 'Mon, 30 Nov', '30 Nov 2026 08:00', '2026-11-30T08:00']) {
      expect(parseMailDate(`${start}${run(unit)}x`)).toSatisfy((ms) => ms === null || Number.isSafeInteger(ms));
    }
  });
});

describe('a message', () => {
  test.each([
    ['<a href=', 'a', LENGTH],
    ['<a href=x>', 'a', LENGTH],
    // Once for each pair of them.
    ['<a ', 'href=', 30_000],
  ])('with a text, and %s and then %s again and again in HTML beside it', async (start, unit, length) => {
    const html = start + run(unit, length);
    const parts = `--b\n\nhello\n--b\nContent-Type: text/html\n\n${html}\n--b--\n`;
    const raw = `From: jo@example.org\nContent-Type: multipart/mixed; boundary=b\n\n${parts}`;
    expect((await parseMail(Buffer.from(raw))).text).toMatch(/^hello\n/);
  });

  const WORD = '=?utf-8?B?YWJj?= ';
  const UNITS = [WORD, '=?', '=?utf-8?B?', '?=', '"', '\\', ',', '(', '()', '<', '<>', '@', ';', 'a=b;', ':;', ' '];

  test.each(UNITS)('with %j in its fields', async (unit) => {
    for (const field of ['From', 'Subject', 'References', 'Content-Type', 'Date', 'X-Other']) {
      const found = await parseMail(Buffer.from(`${field}: x${run(unit)}y\nX-Last: z\n\nbody`));
      expect(found.headers.at(-1)).toEqual({ name: 'X-Last', value: 'z' });
    }
    const escaped = run(unit).replace(/["\\]/g, '\\$&');
    const file = `Content-Disposition: attachment; filename="${escaped}"\nContent-ID: ${run(unit)}\n\nx`;
    expect((await parseMail(Buffer.from(file))).attachments).toHaveLength(1);
  });

  // However the words are hidden from a look at the field as it stands.
  test.each([
    ['Jo', WORD],
    ['"', '=\\?utf-8?B?YWJj?= '],
    ['"="', '?utf-8?B?YWJj?= ='],
    ['', '=\x01?utf-8?B?YWJj?= '],
  ])('with more than a megabyte of encoded words in a name: %s %s', async (start, word) => {
    const from = `From: ${start} ${run(word, 1_700_000)}${start.slice(0, 1) === '"' ? '"' : ''} <jo@example.org>`;
    expect((await parseMail(Buffer.from(`${from}\n\nbody`))).headers[0]?.name).toBe('From');
  });
});
