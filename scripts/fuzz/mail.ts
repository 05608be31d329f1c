import { utf8Length } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { checkCustomHeaders } from '@pmail/core/policy/headers.ts';
import { normalizeMessageId, parseMessageIds } from '@pmail/core/threading/message-id.ts';
import { buildReferences } from '@pmail/core/threading/references.ts';
import { normalizeSubject, prefixedSubject } from '@pmail/core/threading/subject.ts';
import { htmlToText } from '@pmail/mime/html-to-text.ts';
import { parseMailDate } from '@pmail/mime/mail-date.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { sanitizeHtml } from '@pmail/mime/sanitize.ts';
import { type Fuzzer, fuzzer, must, type Verdict } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignBytes, foreignText } from '@pmail/testkit/fuzz/inputs.ts';
import fc from 'fast-check';

const SIMPLE = [
  'From: "Jo, Bloggs" <jo@example.org>\r\nTo: desk@acme.example, Kim <kim@example.net>\r\nCc: team: a@x.example, b@x.example;\r\n' +
    'Subject: =?utf-8?Q?Caf=C3=A9?= =?utf-8?B?w6k=?=\r\nDate: Mon, 30 Nov 2026 08:41:00 +0100\r\nMessage-ID: <one@example.org>\r\n' +
    'In-Reply-To: <zero@example.org>\r\nReferences: <a@x> (comment (nested)) <b@x>\r\n\r\nHello.\r\n',
  'From: jo@example.org\nSubject: plain\n\nbody\n',
];
const MULTIPART =
  'From: jo@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b1"\r\n\r\n--b1\r\n' +
  'Content-Type: multipart/alternative; boundary=b2\r\n\r\n--b2\r\nContent-Type: text/plain; charset=iso-8859-1\r\n' +
  'Content-Transfer-Encoding: quoted-printable\r\n\r\nH=E9llo=\r\n world\r\n--b2\r\nContent-Type: text/html\r\n\r\n<p>Hi</p>\r\n' +
  '--b2--\r\n--b1\r\nContent-Type: application/pdf; name*0="a"; name*1*=utf-8\'\'%C3%A9.pdf\r\nContent-Disposition: attachment;' +
  ' filename="a/b.pdf"\r\nContent-ID: <x@y>\r\nContent-Transfer-Encoding: base64\r\n\r\nSGVsbG8=\r\n--b1\r\n' +
  'Content-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner text\r\n--b1--\r\n';
const WORDS = [
  '--b1',
  '--b2--',
  'boundary=',
  'Content-Type: ',
  'charset=utf-7',
  '=?utf-8?B?',
  '=?x?Q?=?=',
  '?=',
  '<',
  '>',
  ';',
  'filename*=',
  '\r\n\r\n',
  '\r',
  '(',
  ')',
  '"',
  '=\r\n',
  'From: ',
];

/** No header value of ours may break a line. */
const ONE_LINE = /^[^\x00-\x08\x0a-\x1f\x7f]*$/;

const KEPT: readonly Uint8Array[] = [
  // Byte order marks, at the start of an encoded word and within one, were read as a part of names and subjects.
  'From: =?utf-8?B?77u/SmVu?= =?utf-8?B?77u/77u/cw==?= <jo@example.org>\r\nSubject: =?utf-8?B?Y++7v2Q=?=\r\n\r\nx',
].map((text) => new Uint8Array(Buffer.from(text)));

export const mime: Fuzzer = fuzzer('MIME', foreignBytes([...SIMPLE, MULTIPART], WORDS), checkMail, { kept: KEPT });

async function checkMail(raw: Uint8Array): Promise<Verdict> {
  const mail = await parseMail(raw);
  must(mail.text === null || !mail.text.includes('\r'), 'a text has one kind of line end');
  must(ONE_LINE.test(mail.subject), 'a subject is one line');
  must(!/\ufeff/.test(mail.subject + (mail.from?.name ?? '')), 'byte order marks are read out of no header');
  must(mail.attachments.length <= 500, 'attachments are not without end');
  for (const { filename, content_id: id } of mail.attachments) {
    must(filename !== '' && utf8Length(filename) <= LIMITS.attachment_filename_bytes_max, 'a file name fits');
    must(!/[/\\\x00-\x1f\x7f]/.test(filename) && filename !== '..', 'a file name is safe on a disk');
    must(id === null || ONE_LINE.test(id), 'a content id is one line');
  }
  for (const { name, value } of mail.headers) must(ONE_LINE.test(name) && ONE_LINE.test(value), 'a header is one line');
  for (const id of [mail.message_id, ...mail.in_reply_to, ...mail.references]) {
    must(id === null || normalizeMessageId(id) === id, 'an id is in its one form');
  }
  const size = mail.attachments.reduce((sum, { content }) => sum + content.length, 0);
  must(size + (mail.text?.length ?? 0) + (mail.html?.length ?? 0) <= 4 * raw.length + 1_000, 'nothing grows');
  return mail.from !== null || 'no sender';
}

const LINE_ENDS = ['\n', '\r\n', '\r', ' \r\n'];
const SHORT_LINES = [
  '',
  'x',
  ' a',
  'a:b',
  '=',
  'YQ=',
  '--',
  '--x',
  '--b',
  '--b1',
  '--b2--',
  '-- ',
  '>',
  'a ',
  '<p>',
  '.',
];
const HEADS = [
  '\r\n',
  'X: y\r\n',
  'Content-Type: text/html\r\n\r\n',
  'Content-Type: text/plain; format=flowed; delsp=yes\r\n\r\n',
  'Content-Type: text/calendar\r\n\r\n',
  'Content-Transfer-Encoding: base64\r\n\r\n',
  'Content-Transfer-Encoding: quoted-printable\r\n\r\n',
  'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n',
  'Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\n',
  'Content-Type: multipart/mixed; boundary="b "\r\n\r\n',
];

/** Mail of short lines without end, in which every line has its cost; the time is what the fuzzer looks at. */
export const lines: Fuzzer = fuzzer(
  'MIME of many lines',
  fc
    .tuple(
      fc.constantFrom(...HEADS),
      fc.array(fc.tuple(fc.constantFrom(...SHORT_LINES), fc.constantFrom(...LINE_ENDS)), {
        minLength: 1,
        maxLength: 4,
      }),
      fc.oneof({ arbitrary: fc.nat(10_000), weight: 9 }, { arbitrary: fc.nat(400_000), weight: 1 }),
      fc.constantFrom('', MULTIPART),
    )
    .map(([head, unit, bytes, rest]) => {
      const text = unit.flat().join('');
      const body = text.repeat(Math.ceil(bytes / text.length));
      return new Uint8Array(Buffer.from(`From: jo@example.org\r\n${head}${body}${rest}`, 'latin1'));
    }),
  async (raw) => {
    const mail = await parseMail(raw);
    must(mail.from?.address === 'jo@example.org', 'the sender is read');
    must(mail.headers.length <= 20_001, 'headers are not without end');
    return !mail.parse_degraded || 'read in part';
  },
  {
    // Each line had costs of its own in the parser: a mail of few megabytes stalled all others for minutes.
    kept: ['\n', 'x\r\n', '--x\n', 'YQ='].flatMap((text) =>
      HEADS.map((head) => new Uint8Array(Buffer.from(`From: jo@example.org\r\n${head}${text.repeat(100_000)}`))),
    ),
  },
);

export const html: Fuzzer = fuzzer(
  'HTML',
  foreignText(
    [
      '<p>Hello <a href="https://x.example">x</a></p><table><tr><td>a</td></tr></table>',
      '<div style="color:red"><img src="cid:x" onerror="x()"><script>alert(1)</script><!-- c --></div>',
      '<svg><a xlink:href="javascript:x()"><style>@import url(x)</style></svg>',
    ],
    [
      '<',
      '>',
      '</',
      '<!--',
      '-->',
      '<script',
      'javascript:',
      'on',
      '"',
      "'",
      '&#x',
      '&amp;',
      ']]>',
      '<style>',
      '<p>',
      '<td>',
    ],
  ),
  (input) => {
    const clean = sanitizeHtml(input);
    must(!/<script|<iframe|<object|<embed|<form/i.test(clean), 'nothing active is left');
    must(!/<[^>]*\son\w+\s*=/i.test(clean), 'no handler is left');
    must(!/<[^>]*(?:href|src)\s*=\s*["']?\s*(?:javascript|vbscript):/i.test(clean), 'no script in a link is left');
    must(clean.length <= 8 * input.length + 1_000, 'it does not grow without bound');
    const text = htmlToText(input);
    must(text.length <= 8 * input.length + 1_000, 'nor does its text');
    return clean !== '';
  },
);

export const ids: Fuzzer = fuzzer(
  'ids in threads',
  foreignText(
    ['<a@x.example> <b@Y.example>', '<a@x>(c (d))<b@y>', 'bare@x.example another', `<${'l'.repeat(500)}@x.example>`],
    ['<', '>', '(', ')', '@', '\\', '"', '<>', '>\t<'],
  ),
  (input) => {
    const found = parseMessageIds(input);
    for (const id of found) {
      must(normalizeMessageId(id) === id, 'an id is in its one form');
      must(utf8Length(id) <= 998 && !/[\s<>]/.test(id), 'an id has no blanks or brackets, and fits a line');
    }
    const [id, ...references] = found;
    if (id === undefined) return false;
    const built = buildReferences({ id, references, in_reply_to: null });
    must(built.length <= LIMITS.references_count_max, 'references are not without end');
    must(utf8Length(built.map((entry) => `<${entry}>`).join(' ')) <= LIMITS.references_bytes_max, 'and fit');
    return true;
  },
);

export const subjects: Fuzzer = fuzzer(
  'subjects and dates',
  foreignText(
    ['Re: AW: Fwd: Booking', 'RE[2]: x', '回复：测试', 'Mon, 30 Nov 2026 08:41:00 +0100', '30 Nov 26 8:41 EST (x)'],
    ['Re:', 'Fwd:', 'AW: ', '：', '[', ']', '+2500', 'Feb', '29', '(', '99'],
  ),
  (input) => {
    const subject = normalizeSubject(input);
    must(normalizeSubject(subject) === subject, 'a subject is in its one form');
    must(ONE_LINE.test(prefixedSubject('Re', input).replace(/[\r\n]/g, '')) || /[\x00-\x1f\x7f]/.test(input), 'a line');
    const date = parseMailDate(input);
    must(date === null || Number.isSafeInteger(date), 'a date is a moment');
    return date !== null;
  },
);

// One name that is not let through is enough, so most of them are: else nobody would look at the values.
const name = fc.oneof(
  { arbitrary: fc.constantFrom('X-Custom', 'x-a', 'X-A', 'Importance', 'Comments', 'keywords'), weight: 20 },
  {
    arbitrary: foreignText(
      ['X-Custom', 'List-Unsubscribe', 'Reply-To', 'x-a', 'Subject'],
      ['\r\n', ':', ' ', '-', 'é', '\0'],
    ),
    weight: 1,
  },
);
const value = foreignText(
  ['<https://x.example/u>', 'text', 'a@x.example', 'é', `${'v'.repeat(2_000)}`],
  ['\r\n', '\nBcc: x@x.example', '\0', '<', '>', ',', '=?utf-8?'],
);

export const headers: Fuzzer = fuzzer(
  'headers',
  fc.array(fc.tuple(name, value), { maxLength: 25 }).map((entries) => Object.fromEntries(entries)),
  (input) => {
    const checked = checkCustomHeaders(input);
    if (!checked.ok) return checked.code;
    for (const header of checked.value) {
      must(/^[\x21-\x39\x3b-\x7e]+$/.test(header.name), 'a name is a name of a header');
      must(ONE_LINE.test(header.value), 'a value is one line');
      must(utf8Length(header.value) <= LIMITS.header_value_bytes_max, 'a value fits');
    }
    must(Object.keys(input).length === checked.value.length, 'nothing is left out without a word');
    return true;
  },
);
