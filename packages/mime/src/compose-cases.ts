import type { ComposeInput } from '@pmail/core/compose/types.ts';
import { buildReferences } from '@pmail/core/threading/references.ts';
import { attachment, bytes, composeInput } from './test-support.ts';

/** Subjects that broke other composers; all of at most 998 characters. */
export const SUBJECTS: string[] = [
  '',
  'Schöne Grüße aus Zürich — Rückmeldung zur Abholung des Fahrzeugs am Münchner Flughafen',
  '中'.repeat(330),
  'Änderung Ihrer Buchung — '.repeat(38).trim(),
  'a'.repeat(998),
  'é'.repeat(998),
  `see ${'b'.repeat(300)} and the rest`,
  'word '.repeat(199).trim(),
  'two  blanks   here',
  `two  blanks in ${'a long subject '.repeat(8)}`.trim(),
  ' leading and trailing ',
  '=?utf-8?Q?x?=',
  'see =?utf-8?B?eA==?= here',
  '=?',
  'half =?utf-8?Q?open',
  'مرحبا بكم في خدمة البريد الإلكتروني',
  'שלום עולם',
  '予約確認のお知らせ：ご予約番号4471',
  '👩‍👩‍👧‍👦 family 🏳️‍🌈 flags 👍🏽'.repeat(8),
  'quotes "inside" \\ back\\slash (comment) <angle>, comma; colon:',
  '100% = _under_score_?',
];

export const NAMES: string[] = [
  '',
  'Jo',
  'Jo Doe',
  "O'Brien & Sons",
  'J. R. "Bob" Dobbs',
  'back\\slash\\',
  'Doe, Jo',
  'a@evil.example',
  'jo <jo@evil.example>',
  '=?utf-8?Q?x?=',
  'Hi =?utf-8?B?eA==?= there',
  'José Ñandú',
  '山田 太郎',
  'Ümit, "Ü" <ü@x>',
  '🚗 Acme Cars 🚙',
  'مكتب الحجوزات',
  'x'.repeat(78),
  'ab '.repeat(26).trim(),
  '"'.repeat(40),
  'two  blanks',
  'group: a, b;',
  '(not a comment)',
];

/** File names as core leaves them: cleaned, at most 255 bytes. */
export const FILENAMES: string[] = [
  'a.txt',
  'Übersicht.pdf',
  `${'見積書'.repeat(9)}.pdf`,
  `見積書 2026 "確定" (1); v=2${'ü'.repeat(60)}.xlsx`,
  `${'annual report '.repeat(12)}x.png`,
  `${'x'.repeat(251)}.txt`,
  `${'é'.repeat(125)}.txt`,
  "quote \" and 'single' 100%.txt",
  "it's 50% off; really=yes, (ok).txt",
  '🚗🚙.png',
  'ملف.pdf',
  'no ending',
  'a*b.txt',
  '%41%42.txt',
];

/** Subjects and file names under which other composers were reported broken, by the number of the report. */
export const REPORTED: { name: string; overrides: Partial<ComposeInput> }[] = [
  ...[
    'Grüße aus Köln — Ihre Rückfrage zur Übergabe der Schlüssel für das Häuschen',
    '中'.repeat(300),
    'Übersicht aller Termine — '.repeat(35).trim(),
    'a'.repeat(900),
  ].map((subject, i) => ({ name: `case 61, subject ${i}`, overrides: { subject } })),
  ...[
    'résumé.pdf',
    `${'請求書'.repeat(9)}.pdf`,
    `請求書 2026 "最終" (1); v=2${'ü'.repeat(60)}.xlsx`,
    `${'long '.repeat(49)}x.png`,
  ].map((filename, i) => ({
    name: `case 65, file name ${i}`,
    overrides: { attachments: [attachment({ filename })] },
  })),
];

const INLINE_HTML = '<p>See <img src="cid:logo@acme.example.com" alt="Logo"> here</p>';

function inlineImage() {
  return attachment({
    filename: 'logo.png',
    content_type: 'image/png',
    disposition: 'inline',
    content_id: 'logo@acme.example.com',
    content: bytes(1000),
  });
}

const LONG_TOKEN = 'x'.repeat(2500);

const BODIES: Record<string, Partial<ComposeInput>> = {
  'text only': {},
  'html only': { text: null, html: '<h1>Hello</h1><p>Your car is <b>ready</b>.</p>' },
  'text and html': { text: 'Hello', html: '<p>Hello</p>' },
  'empty text': { text: '' },
  'no body at all': { text: null },
  'empty text with an attachment': { text: '', attachments: [attachment()] },
  'text with an attachment': { attachments: [attachment()] },
  'text with an empty attachment': { attachments: [attachment({ content: bytes(0) })] },
  'inline image': { text: null, html: INLINE_HTML, attachments: [inlineImage()] },
  'inline image and attachment': { html: INLINE_HTML, attachments: [attachment(), inlineImage()] },
  'inline part without html': { attachments: [inlineImage()] },
  '32 attachments': {
    attachments: Array.from({ length: 32 }, (_, i) =>
      attachment({ filename: `file-${i}.bin`, content: bytes(i * 31) }),
    ),
  },
  'long unbroken text': { text: `${LONG_TOKEN}\n${'ü'.repeat(2500)}\n` },
  'long unbroken html': { text: null, html: `<p>${LONG_TOKEN}</p>` },
  'line ends of every kind': { text: 'one\rtwo\nthree\r\nfour\n\rfive', html: '<p>a\rb\nc\r\nd</p>' },
  'dots and From at line starts': { text: '.\n..\n.hidden\nFrom here on\n>quoted\n.' },
  'blanks at line ends': { text: 'a \nb\t\n-- \nsignature \u00e9 \n' },
  'looks like a boundary': {
    text: '--=_01jd9q3v7m8x2c4n6b5k1r0e9t_a\n--=_01jd9q3v7m8x2c4n6b5k1r0e9t_m--\n',
    html: '<p>x</p>',
  },
  'control characters in the text': { text: 'bell \u0007 escape \u001b[31m delete \u007f nothing \u0000 end' },
  'equals signs': { text: 'a=b\n=\n==\n=3D\nüü=\n' },
  'chinese text': { text: '你好，您的车已经准备好了。\n'.repeat(40) },
  'right-to-left text': { text: 'مرحبا، سيارتك جاهزة.\nשלום\n' },
  'emoji text': { text: '👩‍👩‍👧‍👦'.repeat(60) },
  'signature, footer, unsubscribe': {
    text: 'Buy',
    html: '<p>Buy</p>',
    signature: { text: 'Acme\nDesk', html: '<b>Acme</b>' },
    disclosure: { mode: 'footer', text: 'Written by an AI & <checked>' },
    unsubscribe: { url: 'https://acme.example.com/u?a=1&b=2', mailto: 'u@acme.example.com' },
  },
  'links to large attachments': {
    html: '<p>See</p>',
    links: ['report.pdf', 'Übersicht "final" <1>.pdf'].map((filename) => ({
      filename,
      size: '4.0 MB',
      url: `https://api.agents.example/v1/links/${'bDE6'.repeat(50)}`,
      expires_at: Date.UTC(2026, 11, 3, 9),
    })),
  },
  'html with every line over 998 bytes': { text: null, html: `<p>${'word '.repeat(3000)}</p>`.repeat(3) },
  'bare CR and LF everywhere': {
    text: '\r\ra\r\n\rb\n\n\rc\r',
    html: '<p>\ra\n\r\n\rb</p>\r',
    signature: { text: 'one\rtwo\nthree', html: null },
    disclosure: { mode: 'footer', text: 'four\rfive' },
  },
  forward: {
    text: 'FYI',
    forwarded: {
      from: { address: 'kim@example.net', name: 'Kim' },
      sent_at: Date.UTC(2026, 8, 14, 8, 12),
      subject: 'Invoice – 88213',
      to: [{ address: 'desk@acme.example.com', name: '' }],
      text: 'original',
      html: '<p>original</p>',
    },
  },
};

const HEADERS: Record<string, Partial<ComposeInput>> = {
  'many recipients': {
    to: Array.from({ length: 40 }, (_, i) => ({
      address: `person-${i}@example.org`,
      name: NAMES[i % NAMES.length] ?? '',
    })),
    cc: [
      { address: `${'l'.repeat(64)}@${`${'d'.repeat(55)}.`.repeat(3)}example.org`, name: 'Long, address' },
      { address: '"quoted local"@example.org', name: '' },
      { address: '"quoted local"@example.org', name: 'Quoted' },
    ],
    reply_to: { address: 'desk+t03k.9f2mq7xa@acme.example.com', name: 'Acme Desk' },
  },
  'references of a long thread': {
    in_reply_to: `reply-299-${'i'.repeat(60)}@example.org`,
    references: buildReferences({
      id: `reply-299-${'i'.repeat(60)}@example.org`,
      references: Array.from({ length: 300 }, (_, i) => `reply-${i}-${'i'.repeat(60)}@example.org`),
      in_reply_to: null,
    }),
  },
  '300 references, as they are': {
    references: Array.from({ length: 300 }, (_, i) => `reply-${i}-${'i'.repeat(60)}@example.org`),
  },
  'long header values': {
    headers: [
      { name: 'X-Long-Words', value: 'word '.repeat(300).trim() },
      { name: 'X-Long-Token', value: 'y'.repeat(1500) },
      { name: 'X-Token-Of-A-Line', value: 'z'.repeat(600) },
      { name: 'X-Not-Ascii', value: 'schön '.repeat(60).trim() },
      { name: 'X-Looks-Encoded', value: '=?utf-8?Q?x?=' },
      { name: `X-${'N'.repeat(98)}`, value: 'schön' },
    ],
  },
  'automatic answer': { auto_submitted: true, hop: 3, disclosure: { mode: 'header', text: 'x' } },
};

export interface ComposeCase {
  name: string;
  input: ComposeInput;
  /** postal-mime decodes encoded-words in file names that were percent-encoded, so it changes such a name. */
  notInPostalMime?: true;
}

/** Messages of every shape; each must read the same in every parser. */
export const COMPOSE_CASES: ComposeCase[] = [
  ...Object.entries({ ...BODIES, ...HEADERS }).map(([name, overrides]) => ({ name, input: composeInput(overrides) })),
  ...REPORTED.map(({ name, overrides }) => ({ name, input: composeInput(overrides) })),
  ...SUBJECTS.map((subject) => ({ name: `subject ${subject.slice(0, 30)}`, input: composeInput({ subject }) })),
  ...NAMES.map((name) => ({
    name: `name ${name.slice(0, 30)}`,
    input: composeInput({
      from: { address: 'desk@acme.example.com', name },
      to: [
        { address: 'jo@example.org', name },
        { address: 'kim@example.org', name: '' },
        { address: 'lee@example.org', name },
      ],
    }),
  })),
  ...FILENAMES.map((filename) => ({
    name: `file name ${filename.slice(0, 30)}`,
    input: composeInput({ attachments: [attachment({ filename })] }),
  })),
  {
    name: 'file name that looks encoded',
    input: composeInput({ attachments: [attachment({ filename: '=?utf-8?Q?x?=.txt' })] }),
    notInPostalMime: true,
  },
];
