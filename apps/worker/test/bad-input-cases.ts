import type { RouteId } from '@pmail/contracts/routes.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';
import { letter } from './mail.ts';

/** Requests with something wrong in them, and the paths that the answer must name. */

export interface Malformed {
  what: string;
  /** Made late where it is large. */
  body: object | (() => object);
  paths: string[];
  code?: ErrorCode;
}

const bad = (what: string, changes: object | (() => object), ...paths: string[]): Malformed => ({
  what,
  body: typeof changes === 'function' ? () => ({ ...letter(), ...changes() }) : { ...letter(), ...changes },
  paths,
});

const file = (changes: object): object => ({
  attachments: [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==', ...changes }],
});
const many = (count: number, make: (n: number) => string): string[] => Array.from({ length: count }, (_, n) => make(n));
const simulated = (n: number): string => `r${n}@simulator.invalid`;
const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);

const LONE = 'a\ud800b';
const BREAKS = { CRLF: '\r\n', LF: '\n', CR: '\r', NUL: '\0', bell: '\x07', DEL: '\x7f', NEL: '\x85', LS: '\u2028' };
const breaking = Object.entries(BREAKS);

const shapes: Malformed[] = [
  { what: 'with nothing in it', body: {}, paths: ['to'] },
  bad('with an unknown field', { tracking: true }, 'tracking'),
  bad('with three', { a: 1, b: 2, 'c d': 3 }, 'a', 'b', 'c d'),
  bad('with a field of replies', { include_attachments: true }, 'include_attachments'),
  bad('with an unknown field of a recipient', { to: [{ address: simulated(1), email: 'x' }] }, 'to[0].email'),
  bad('with an unknown field of a file', file({ size: 1 }), 'attachments[0].size'),
  bad(
    'with an unknown field of unsubscribe',
    { unsubscribe: { url: 'https://a.example', method: 'x' } },
    'unsubscribe.method',
  ),
  bad(
    'with an unknown field of consent',
    { consent: { basis: 'x', recorded_at: '2026-01-01T00:00:00Z', by: 'x' } },
    'consent.by',
  ),
  bad('with one recipient not in a list', { to: simulated(1) }, 'to'),
  bad('with a number as recipient', { to: [5] }, 'to[0]'),
  bad('with null as recipient', { to: [simulated(1), null] }, 'to[1]'),
  bad('with a list as recipient', { cc: [[simulated(1)]] }, 'cc[0]'),
  bad('with a recipient without address', { bcc: [{ name: 'x' }] }, 'bcc[0].address'),
  bad('with a number as name', { to: [{ address: simulated(1), name: 5 }] }, 'to[0].name'),
  bad('without recipients', { to: [] }, 'to'),
  bad('with an object of recipients', { cc: { 0: simulated(1) } }, 'cc'),
  bad('with a number as subject', { subject: 5 }, 'subject'),
  bad('with null as subject', { subject: null }, 'subject'),
  bad('with a switch as text', { text: true }, 'text'),
  bad('with a list as HTML', { html: ['<p>'] }, 'html'),
  bad('with files in no list', { attachments: {} }, 'attachments'),
  bad('with a text as file', { attachments: ['a.txt'] }, 'attachments[0]'),
  bad(
    'with a file of nothing',
    { attachments: [{}] },
    'attachments[0].filename',
    'attachments[0].content_type',
    'attachments[0].content_base64',
  ),
  bad('with a disposition of its own', file({ disposition: 'hidden' }), 'attachments[0].disposition'),
  bad('with a kind of its own', { kind: 'spam' }, 'kind'),
  bad('with a number as thread', { thread_id: 5 }, 'thread_id'),
  bad('with null as sender', { from_address: null }, 'from_address'),
  bad('with a text as labels', { labels: 'a' }, 'labels'),
  bad('with a number as label', { labels: ['a', 5] }, 'labels[1]'),
  bad('with a list of headers', { headers: [] }, 'headers'),
  bad('with a number as value of a header', { headers: { 'X-A': 5 } }, 'headers.X-A'),
  bad('with a number in metadata', { metadata: { a: 1 } }, 'metadata.a'),
  bad('with an object in metadata', { metadata: { a: { b: 'c' } } }, 'metadata.a'),
  bad('with a consent of yesterday', { consent: { basis: 'x', recorded_at: 'yesterday' } }, 'consent.recorded_at'),
  bad('with a number as link', { unsubscribe: { url: 5 } }, 'unsubscribe.url'),
  bad(
    'with a link that ends its brackets',
    { unsubscribe: { url: 'https://a.example', mailto: 'a@b.example>' } },
    'unsubscribe.mailto',
  ),
  bad('with many faults at once', { to: [5], subject: 5, text: 5, extra: 1 }, 'to[0]', 'subject', 'text', 'extra'),
];

const depths: Malformed[] = [
  bad('with brackets as recipients', () => ({ to: nested(100_000) }), ''),
  bad('with brackets as text', () => ({ text: nested(100_000) }), ''),
  bad('with brackets in metadata', () => ({ metadata: { a: nested(100_000) } }), ''),
  bad('with brackets in an unknown field', () => ({ x: nested(100_000) }), ''),
  bad('with lists of 30 levels as recipients', () => ({ to: nested(30) }), 'to[0]'),
  bad('with as many in metadata', () => ({ metadata: { a: nested(30) } }), 'metadata.a'),
  bad('with 3,000,000 numbers', () => ({ labels: Array.from({ length: 3_000_000 }, () => 0) }), ''),
];

const counts: Malformed[] = [
  bad('with 60 recipients', { to: many(60, simulated) }, 'to'),
  {
    ...bad('with 60 recipients in three fields', {
      to: many(20, simulated),
      cc: many(20, (n) => simulated(n + 20)),
      bcc: many(20, (n) => simulated(n + 40)),
    }),
    code: 'too_many_recipients',
  },
  bad('with 40,000 recipients that are none', () => ({ to: many(40_000, () => '') }), 'to'),
  bad(
    'with 33 files',
    () => ({
      attachments: many(33, String).map((filename) => ({ filename, content_type: 'a/b', content_base64: '' })),
    }),
    'attachments',
  ),
  bad('with 65 labels', { labels: many(65, (n) => `l${n}`) }, 'labels'),
  bad('with 40,000 labels', () => ({ labels: many(40_000, String) }), 'labels'),
  bad(
    'with 17 members of metadata',
    { metadata: Object.fromEntries(many(17, String).map((key) => [key, ''])) },
    'metadata',
  ),
  bad(
    'with 40,000 members of metadata',
    () => ({ metadata: Object.fromEntries(many(40_000, String).map((key) => [key, ''])) }),
    'metadata',
  ),
  bad(
    'with 40,000 unknown fields',
    () => Object.fromEntries(many(40_000, (n) => `f${n}`).map((key) => [key, 1])),
    ...many(50, (n) => `f${n}`),
  ),
  bad('with a subject of 999 characters', { subject: 'é'.repeat(999) }, 'subject'),
  bad('with a name of 300 bytes', file({ filename: 'é'.repeat(150) }), 'attachments[0].filename'),
  bad('with a key of 65 characters', { metadata: { ['k'.repeat(65)]: 'x' } }, `metadata.${'k'.repeat(65)}`),
  bad('with an empty key', { metadata: { '': 'x' } }, 'metadata.'),
  bad('with a value of 514 bytes', { metadata: { a: 'é'.repeat(257) } }, 'metadata.a'),
  bad('with a header of 2,050 bytes', { headers: { 'X-A': 'é'.repeat(1_025) } }, 'headers.X-A'),
  bad(
    'with 17 KB of headers',
    { headers: Object.fromEntries(many(9, (n) => `X-${n}`).map((name) => [name, 'x'.repeat(2_000)])) },
    'headers',
  ),
];

const controls: Malformed[] = breaking.flatMap(([name, value]) => [
  bad(`with ${name} in the subject`, { subject: `a${value}Bcc: evil@example.com` }, 'subject'),
  bad(`with ${name} in a name`, { cc: [{ address: simulated(1), name: `A${value}B` }] }, 'cc[0].name'),
  bad(`with ${name} in a header`, { headers: { 'X-A': `a${value}Bcc: evil@example.com` } }, 'headers.X-A'),
  {
    ...bad(`with ${name} in the name of a header`, { headers: { [`X-A${value}`]: 'x' } }, `headers.X-A${value}`),
    code: 'header_not_allowed',
  },
  {
    ...bad(`with ${name} before the @`, { bcc: [`a${value}b@simulator.invalid`] }, 'bcc[0]'),
    code: value > '\x7f' && value !== '\u2028' ? 'address_unsupported' : 'address_invalid',
  },
  { ...bad(`with ${name} after the @`, { to: [`a@simulator.invalid${value}`] }, 'to[0]'), code: 'address_invalid' },
  bad(
    `with ${name} in the type of a file`,
    file({ content_type: `text/plain${value}` }),
    'attachments[0].content_type',
  ),
  bad(`with ${name} in a content id`, file({ content_id: `a${value}b@c` }), 'attachments[0].content_id'),
  bad(`with ${name} in a label`, { labels: [`a${value}`] }, 'labels[0]'),
  bad(`with ${name} in the sender`, { from_address: `ann.lab@agents.example${value}` }, 'from_address'),
  bad(
    `with ${name} in the address to unsubscribe`,
    { unsubscribe: { url: 'https://a.example', mailto: `a@b.example${value}` } },
    'unsubscribe.mailto',
  ),
]);

const texts: Malformed[] = [
  bad('with half a character in the subject', { subject: LONE }, 'subject'),
  bad('with half a character in the text', { text: LONE }, 'text'),
  bad('with half a character in the HTML', { html: LONE }, 'html'),
  bad('with half a character in a name', { to: [{ address: simulated(1), name: LONE }] }, 'to[0].name'),
  {
    ...bad('with half a character in an address', { to: [`${LONE}@simulator.invalid`] }, 'to[0]'),
    code: 'address_unsupported',
  },
  { ...bad('with half a character in a domain', { to: [`a@${LONE}.invalid`] }, 'to[0]'), code: 'address_invalid' },
  bad('with half a character in a header', { headers: { 'X-A': LONE } }, 'headers.X-A'),
  bad('with half a character in a file name', file({ filename: LONE }), 'attachments[0].filename'),
  bad('with half a character in a type', file({ content_type: `text/${LONE}` }), 'attachments[0].content_type'),
  bad('with half a character in a label', { labels: [LONE] }, 'labels[0]'),
  bad('with half a character in metadata', { metadata: { a: LONE } }, 'metadata.a'),
  bad('with half a character in a key', { metadata: { [LONE]: 'a' } }, 'metadata.a\ufffdb'),
  bad('that says nothing', { text: '' }, 'text'),
  bad('with a label in capitals', { labels: ['Urgent'] }, 'labels[0]'),
  bad('with an empty header', { headers: { 'X-A': ' ' } }, 'headers.X-A'),
  bad('with a header in two spellings', { headers: { 'X-A': 'x', 'x-a': 'y' } }, 'headers.x-a'),
  bad('with an importance of its own', { headers: { Importance: 'extreme' } }, 'headers.Importance'),
  bad(
    'with a type that has parameters',
    file({ content_type: 'text/plain; charset=x' }),
    'attachments[0].content_type',
  ),
  bad('with a part in the text and no id for it', file({ disposition: 'inline' }), 'attachments[0].content_id'),
  bad(
    'with one id for two parts',
    {
      attachments: many(2, String).map((filename) => ({
        filename,
        content_type: 'image/png',
        content_base64: '',
        content_id: 'logo',
      })),
    },
    'attachments[1].content_id',
  ),
];

const base64: Malformed[] = [
  'a',
  'YQ',
  'YQ=',
  'YQ===',
  '!!!!',
  'YQ==\n',
  'YW Jj',
  '-_-_',
  'Y=Q=',
  '=',
  'YQ==YQ==',
  'é===',
  'data:;base64,YQ==',
].map((text) =>
  bad(`with ${JSON.stringify(text)} as base64`, file({ content_base64: text }), 'attachments[0].content_base64'),
);

export const letters: Malformed[] = [...shapes, ...depths, ...counts, ...controls, ...texts, ...base64];

interface MalformedBody {
  route: RouteId;
  body: unknown;
  paths: string[];
}

export const bodies: MalformedBody[] = [
  { route: 'messages.update', body: { read: 'true' }, paths: ['read'] },
  { route: 'messages.update', body: { read: 1, unread: true }, paths: ['read', 'unread'] },
  { route: 'messages.update', body: { labels_add: 'a' }, paths: ['labels_add'] },
  {
    route: 'messages.update',
    body: { labels_add: ['A b'], labels_remove: [''] },
    paths: ['labels_add[0]', 'labels_remove[0]'],
  },
  { route: 'messages.update', body: { labels_add: many(65, (n) => `l${n}`) }, paths: ['labels_add'] },
  { route: 'messages.resolve', body: {}, paths: ['outcome'] },
  { route: 'messages.resolve', body: { outcome: 'delivered' }, paths: ['outcome'] },
  { route: 'messages.resolve', body: { outcome: ['sent'] }, paths: ['outcome'] },
  { route: 'messages.resolve', body: { outcome: 'sent', note: 'x' }, paths: ['note'] },
  ...(['messages.reply', 'messages.reply_all'] as const).flatMap((route) => [
    { route, body: {}, paths: ['text'] },
    { route, body: { text: '' }, paths: ['text'] },
    { route, body: { text: 5, html: [] }, paths: ['text', 'html'] },
    { route, body: { text: 'x', to: [simulated(1)], cc: [], bcc: [] }, paths: ['to', 'cc', 'bcc'] },
    { route, body: { text: 'x', recipients: [simulated(1)] }, paths: ['recipients'] },
    { route, body: { text: 'x', kind: 'spam' }, paths: ['kind'] },
    { route, body: { text: 'x', labels: ['A b'] }, paths: ['labels[0]'] },
    { route, body: { text: 'x', headers: { 'X-A': 'a\r\nBcc: evil@example.com' } }, paths: ['headers.X-A'] },
    {
      route,
      body: { text: 'x', attachments: [{}] },
      paths: ['filename', 'content_type', 'content_base64'].map(ofFile),
    },
  ]),
  { route: 'messages.forward', body: {}, paths: ['to'] },
  { route: 'messages.forward', body: { to: [] }, paths: ['to'] },
  {
    route: 'messages.forward',
    body: { to: [simulated(1)], include_attachments: 'yes' },
    paths: ['include_attachments'],
  },
  {
    route: 'messages.forward',
    body: { to: [simulated(1)], kind: 'marketing', subject: 'x' },
    paths: ['kind', 'subject'],
  },
];

function ofFile(field: string): string {
  return `attachments[0].${field}`;
}

const numbers = ['0', '101', '-1', '1.5', '1e1', '0x10', ' 5', '٥', '', 'all', '9'.repeat(400)];

export const queries: { route: RouteId; query: Record<string, string> }[] = [
  ...numbers.map((limit) => ({ route: 'messages.list' as const, query: { limit } })),
  ...['0', '101', 'x'].map((limit) => ({ route: 'threads.list' as const, query: { limit } })),
  ...['0', '101', 'x'].map((limit) => ({ route: 'events.list' as const, query: { limit } })),
  ...['0', '101', 'x'].map((messages_limit) => ({ route: 'threads.get' as const, query: { messages_limit } })),
  ...['1', 'TRUE', 'yes', ''].map((dry_run) => ({ route: 'messages.send' as const, query: { dry_run } })),
  { route: 'messages.send', query: { dryrun: 'true' } },
  { route: 'messages.list', query: { direction: 'out', status: 'sent' } },
  { route: 'messages.list', query: { label: 'Urgent' } },
  { route: 'messages.list', query: { after: 'yesterday', before: '2026-01-01' } },
  { route: 'messages.list', query: { q: '' } },
  { route: 'messages.list', query: { q: 'x'.repeat(501) } },
  { route: 'messages.list', query: { include: 'html' } },
  { route: 'messages.get', query: { include: 'html,raw' } },
  { route: 'messages.get', query: { include: '' } },
  { route: 'threads.list', query: { is_unread: '1', archived: 'no' } },
  { route: 'threads.list', query: { cursor: '' } },
  { route: 'threads.get', query: { include: 'text' } },
  { route: 'events.list', query: { type: 'message.received,message.opened' } },
  { route: 'events.list', query: { include: 'payload' } },
  { route: 'events.get', query: { include: 'data' } },
  { route: 'me.get', query: { verbose: 'true' } },
  { route: 'health.get', query: { verbose: 'true' } },
  { route: 'messages.reply', query: { dry_run: 'yes' } },
  { route: 'messages.forward', query: { include_attachments: 'false' } },
];
