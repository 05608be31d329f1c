import { htmlToText } from '@pmail/mime/html-to-text.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import { sanitizeHtml } from '@pmail/mime/sanitize.ts';
import { type Fuzzer, fuzzer } from '@pmail/testkit/fuzz/fuzzer.ts';
import fc from 'fast-check';
import { mustGrowEvenly, workOf } from './growth.ts';

/**
 * One thing again and again, with something behind it: what makes a parser that looks ahead from everywhere take hours.
 * Every reader must take twice as long for twice as much, and no more.
 */

/** In characters. What looks at all of a run for each of them is found in the short ones, what copies it in the long. */
const LENGTHS = [32_000, 32_000, 32_000, 128_000];

const UNITS = [
  ...[' ', '\n', '\t', '\r', '\r\n ', '\f', '\u00a0', '\u3000', '\0', '&nbsp;', '&#32;', '&', '&amp'],
  ...[
    '"',
    "'",
    '\\',
    '\\"',
    ',',
    ';',
    ':',
    '(',
    ')',
    '()',
    '(\\',
    '[',
    '@',
    '.',
    '-',
    '/',
    '*',
    '%',
    '=',
    '?',
    '!',
    '_',
  ],
  ...['=?', '?=', '=?a?q?', '=?utf-8?B?YWJj?= ', '=?utf-8?Q?=C3?=', '=\r\n', '=3D', 'YQ==', "''"],
  ...['<', '>', '<>', '</', '<!', '<!--', '-->', '<!---->', '<b>', '</b>', '<b></x>', '<b ', '<p>', '<a href=', '<br>'],
  ...['<td>', '<li>', '<pre>', '<script>', '<style></style>', '<![CDATA[', '<svg>', '<blockquote>'],
  ...['a', '1', 'é', 'a ', 'a=b;', 'a*0=', 'a*=', '<a@b>', 'a@b.example,', 'a:', '--', '--b', '> ', 'href=', 'http://'],
];

/** The run stands in place of the `%`. */
const HTML = [
  '%',
  '<p>%</p>',
  '<pre>%</pre>',
  '<blockquote><pre>%</pre></blockquote>',
  '<ul><li><pre>%</pre></li></ul>',
  '<table><tr><td><pre>%</pre></td><td>%</td></tr></table>',
  '<a href="http://x%">t</a>',
  "<a href='%http://x' title='%'>t</a>",
  '<a href=mailto:%>t</a>',
  '<a href=%',
  '<a %',
  '<a href="http://x">%</a>',
  '<img src="cid:%" alt="%">',
  '<ol start="%"><li value="%" lang="%">x</ol>',
  '<b %>x</b>',
  '<%>x',
  '</%>x',
  '<!--%-->x',
  '<!%>x',
  '<style>%</style>x',
  '<p style="%" class="%">x',
  '<time datetime="%">x',
];

const FROM = 'From: jo@example.org\r\n';

function mixed(part: string): string {
  return `${FROM}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ny\r\n--b\r\n${part}x\r\n--b--\r\n`;
}

const FIELDS = [
  ...[
    'From',
    'Reply-To',
    'To',
    'Subject',
    'Date',
    'Message-ID',
    'In-Reply-To',
    'References',
    'X-Other',
    'Auto-Submitted',
  ],
  ...['X-Pylota-Mail-Hop', 'Content-Type', 'Content-Disposition', 'Content-Transfer-Encoding', 'Content-ID'],
];
const MAIL = [
  ...FIELDS.flatMap((name) => [`${name}: %`, `${name}: x%`].map((field) => `${field}\r\n${FROM}\r\nx\r\n`)),
  ...['Mon', 'Mon, 30 Nov 2026 8:00', '30', '(x'].map((start) => `${FROM}Date: ${start}%x\r\n\r\n`),
  ...['"%"', '"x%" <jo@example.org>', '<%>', '(%)', 'x:%;'].map((value) => `From: ${value}\r\nTo: ${value}\r\n\r\n`),
  ...[';', '; charset=', '; name="', '; name*0*=', '; format=flowed;'].map(
    (rest) => `${FROM}Content-Type: text/plain${rest}%\r\n\r\nx`,
  ),
  ...['filename=', 'filename="', "filename*=utf-8''", 'filename*0="'].map(
    (name) => `${FROM}Content-Disposition: attachment; ${name}%\r\n\r\nx`,
  ),
  ...['plain', 'plain; format=flowed; delsp=yes', 'html', 'calendar', 'x; charset=utf-16'].map(
    (type) => `${FROM}Content-Type: text/${type}\r\n\r\n%x\r\n`,
  ),
  ...['base64', 'quoted-printable'].map((encoding) => `${FROM}Content-Transfer-Encoding: ${encoding}\r\n\r\n%x\r\n`),
  ...['%', 'Content-Type: message/rfc822\r\n\r\nSubject: %\r\n'].map(mixed),
  ...HTML.map((html) => mixed(`Content-Type: text/html\r\n\r\n${html}`)),
  `${FROM}Content-Type: multipart/mixed; boundary="%b"\r\n\r\n--%b\r\n\r\nx\r\n--%b--\r\n`,
];

/** A run, and where it stands. */
interface Run {
  place: string;
  /** What stands before the run, once. */
  start: string;
  unit: string;
  length: number;
}

function runs(places: readonly string[]): fc.Arbitrary<Run> {
  const unit = fc.oneof(
    { arbitrary: fc.constantFrom(...UNITS), weight: 4 },
    {
      arbitrary: fc.array(fc.constantFrom(...UNITS), { minLength: 2, maxLength: 3 }).map((all) => all.join('')),
      weight: 2,
    },
    { arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 3 }), weight: 1 },
  );
  return fc.record({
    place: fc.constantFrom(...places),
    start: fc.oneof({ arbitrary: fc.constant(''), weight: 3 }, { arbitrary: fc.constantFrom(...UNITS), weight: 1 }),
    unit,
    length: fc.constantFrom(...LENGTHS),
  });
}

/** @param length of all runs in it together */
function textOf({ place, start, unit }: Run, length: number): string {
  const count = length / (place.split('%').length - 1) / unit.length;
  return place.replaceAll('%', () => start + unit.repeat(Math.ceil(count)));
}

/** Each took work by the square of its length, or worse. */
const KEPT_HTML: readonly Run[] = [
  // Blanks: patterns for those at the end of a line or a text looked from every one of them.
  { place: '<pre>%x</pre>', start: '', unit: ' ', length: 128_000 },
  { place: '<blockquote><pre>%x</pre></blockquote>', start: 'x', unit: '\n', length: 128_000 },
  { place: '<ul><li><pre>%x</pre></li></ul>', start: 'x', unit: '&nbsp;', length: 128_000 },
  // Links: the sanitizer looked for comments in them, again after each that it took out.
  { place: '<a href="http://x%y">t</a>', start: '', unit: ' ', length: 128_000 },
  { place: '<a href="http://x%y">t</a>', start: '', unit: '<!---->', length: 128_000 },
];

export const htmlRuns: Fuzzer = fuzzer(
  'long runs in HTML',
  runs(HTML),
  async (run) => {
    let text = '';
    const read = (length: number) => {
      text = htmlToText(sanitizeHtml(textOf(run, length)));
    };
    await mustGrowEvenly(run.length, workOf(read));
    return text !== '' || 'no text';
  },
  { kept: KEPT_HTML, judges_work: true },
);

/** Each took work by the square of its length, or worse. */
const KEPT_MAIL: readonly Run[] = [
  // Blanks in a date, which a pattern shared out among its parts in every way.
  { place: `${FROM}Date: Mon%x\r\n\r\n`, start: '', unit: ' ', length: 128_000 },
  // A link without an end, and attributes of one name, in the HTML beside a text.
  { place: mixed('Content-Type: text/html\r\n\r\n<a href=%'), start: '', unit: 'a', length: 128_000 },
  { place: mixed('Content-Type: text/html\r\n\r\n<a %'), start: '', unit: 'href=', length: 128_000 },
  // Encoded words, joined one by one; what copied all of them each time shows in the longest alone.
  { place: `Subject: %x\r\n${FROM}\r\nx\r\n`, start: '', unit: '=?utf-8?B?YWJj?= ', length: 1_024_000 },
];

export const mailRuns: Fuzzer = fuzzer(
  'long runs in mail',
  runs(MAIL),
  async (run) => {
    let taken = false;
    const read = async (length: number) => {
      const mail = await readMail(new Uint8Array(Buffer.from(textOf(run, length))));
      taken = mail.from !== null;
    };
    await mustGrowEvenly(run.length, workOf(read));
    return taken || 'no sender';
  },
  { kept: KEPT_MAIL, judges_work: true },
);
