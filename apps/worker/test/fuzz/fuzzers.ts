import { ROUTES, type RouteId } from '@pmail/contracts/routes.ts';
import { parseBody } from '@pmail/contracts/validate.ts';
import { createIdFactory } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { seal } from '@pmail/core/seal.ts';
import type { Db, SqlValue } from '@pmail/engine/sql.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignBytes, foreignJson, foreignText } from '@pmail/testkit/fuzz/inputs.ts';
import { encode } from 'dns-packet';
import fc from 'fast-check';
import { readBody } from '../../src/http/body.ts';
import type { RequestContext } from '../../src/http/context.ts';
import { readCursor, writeCursor } from '../../src/http/cursor.ts';
import { ResolverFault, resolveHost } from '../../src/ports/resolver.ts';

/** Fuzzers of the parsers that are the Worker's own; they run in node and in workerd alike. */

const AT = 1_790_000_000_000;
const newId = createIdFactory(() => 0.3);

const MASTER = new Uint8Array(32);
const LONG_AGO = AT - 3 * LIMITS.cursor_age_ms_max;

/**
 * A request as far as cursors need one, with a directory that holds nothing but their signing key. It is always the same
 * one, so that a seed makes the same cursors.
 */
async function cursorRequest(): Promise<RequestContext> {
  const place = { table: 'signing_keys', column: 'ciphertext', row: 'cursor:1' };
  const ciphertext = await seal(MASTER, place, new Uint8Array(32).fill(7), new Uint8Array(12));
  const row: Record<string, SqlValue> = { purpose: 'cursor', kid: '1', ciphertext, created_at: LONG_AGO };
  const db: Db = { batch: async (statements) => statements.map(() => [{ ...row, verify_until: null }]) };
  return {
    env: {},
    db,
    key: { id: newId('key', AT) },
    now: AT,
    config: { master_key: MASTER },
  } as unknown as RequestContext;
}

const LIST = 'messages.list' satisfies RouteId;
const INPUT = { params: { identity_id: newId('idn', AT) }, query: {} };

export async function cursors(): Promise<Fuzzer> {
  const context = await cursorRequest();
  const positions = [
    { at: AT, id: newId('msg', AT) },
    { at: 0, id: 'x' },
  ];
  const written = await Promise.all(positions.map((position) => writeCursor(context, LIST, INPUT, position)));
  const known = written.map((cursor) => cursor ?? '');
  const position = positions[0] ?? null;
  const old = await writeCursor({ ...context, now: AT - 2 * LIMITS.cursor_age_ms_max }, LIST, INPUT, position);
  const elsewhere = await writeCursor(context, LIST, { ...INPUT, query: { label: 'a' } }, position);
  const examples = [...known, old ?? '', elsewhere ?? '', 'c_', 'c_0', 'null'];
  return fuzzer('cursors', foreignText(examples, ['c_', '-', '_', '=', '0', '1', '.']), async (cursor) => {
    const read = await readCursor(context, LIST, { ...INPUT, query: { cursor } });
    if (!read.ok) {
      must(['invalid_request', 'cursor_expired'].includes(read.code), 'a refusal has a code of its own');
      must(!known.includes(cursor), 'what was made is believed');
      return cursor === elsewhere ? 'of another list' : read.code;
    }
    must(
      positions.some((position) => JSON.stringify(position) === JSON.stringify(read.value)),
      'only what was made',
    );
    return true;
  });
}

const SEND = {
  to: ['jo@example.net', { address: 'kim@example.net', name: 'Kim' }],
  cc: [],
  subject: 'Your booking',
  text: 'Hello.',
  html: '<p>Hello.</p>',
  headers: { 'X-Ref': '4471' },
  attachments: [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'SGk=' }],
  labels: ['a'],
  metadata: { k: 'v' },
};
const WORDS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\u0000',
  '\\ud800',
  '1e999',
  '-0',
  '__proto__',
  'constructor',
  'null',
];

const JSON_TYPE = 'application/json';

const KEPT_BODIES = [
  // So many parts became a tree many times their size, in memory that all requests share.
  '['.repeat(2_000) + ']'.repeat(2_000),
  `[${'['.repeat(40)}${']'.repeat(40)}${',0'.repeat(300_000)}]`,
  `[${'{},'.repeat(300_000)}{}]`,
  `{"a":"\\"${'['.repeat(40)}","b":[${'0,'.repeat(300_000)}0]}`,
  // A key that comes twice, also in another spelling: one of them was taken without a word.
  '{"to":["a@example.net"],"to":["b@example.net"]}',
  '{"subject":"a","\\u0073ubject":"b"}',
  '{"__proto__":1,"__proto__":2}',
];

export const bodies: Fuzzer = fuzzer(
  'request bodies',
  fc.record({
    bytes: foreignBytes([JSON.stringify(SEND), '{}', '[]', '"x"', `${'['.repeat(3_000)}`], WORDS),
    type: fc.constantFrom(JSON_TYPE, 'application/json; charset=utf-8', 'application/x+json', 'text/plain', ''),
    optional: fc.boolean(),
  }),
  async ({ bytes, type, optional }) => {
    const request = new Request('https://api.example/', {
      method: 'POST',
      headers: { 'content-type': type },
      body: new Uint8Array(bytes),
    });
    const read = await readBody(request, optional);
    if (!read.ok) {
      must(['invalid_request', 'payload_too_large'].includes(read.code), 'a refusal has a code of its own');
      const text = Buffer.from(bytes).toString();
      must(text !== JSON.stringify(SEND) || !type.startsWith('application/json'), 'what is right is taken');
      return read.code;
    }
    must(!KEPT_BODIES.includes(Buffer.from(bytes).toString()), 'no large tree is built, and no key goes unseen');
    return checkBody(read.value) || 'JSON, and no body of any route';
  },
  { kept: KEPT_BODIES.map((text) => ({ bytes: new Uint8Array(Buffer.from(text)), type: JSON_TYPE, optional: false })) },
);

export const fields: Fuzzer = fuzzer(
  'fields of requests',
  foreignJson([SEND], ['jo@example.net', '', 'x'.repeat(300)]),
  checkBody,
);

/** Any JSON against the schemas of every route that takes a body. */
function checkBody(value: unknown): boolean {
  let taken = false;
  for (const route of Object.values(ROUTES)) {
    const schema = (route as { body?: Parameters<typeof parseBody>[0] | null }).body;
    if (schema === undefined || schema === null) continue;
    const parsed = parseBody(schema, value);
    if (parsed.ok) taken = true;
    else {
      must(parsed.code === 'invalid_request', 'a refusal is of the request');
      must(JSON.stringify(parsed).length < 40_000, 'a refusal does not send everything back');
    }
  }
  return taken;
}

const HOST = 'hooks.acme.com';
const IPV4 = '93.184.216.34';
const IPV6 = '2606:2800:21f::1';

function answer(type: 'A' | 'AAAA', changes: object = {}): string {
  const data = type === 'A' ? IPV4 : IPV6;
  const packet = {
    type: 'response' as const,
    id: 0,
    flags: 0x8180,
    questions: [{ type, name: HOST }],
    answers: [
      { type: 'CNAME' as const, name: HOST, data: 'cdn.example' },
      { type, name: 'cdn.example', data, ttl: 60 },
    ],
    ...changes,
  };
  return Buffer.from(encode(packet)).toString('latin1');
}

/** @param serve has these answers given by the one resolver that is asked, by what it is asked for */
export function dnsAnswers(serve: (answers: Record<'A' | 'AAAA', Uint8Array>) => void): Fuzzer {
  const foreign = (type: 'A' | 'AAAA'): fc.Arbitrary<string> => {
    const examples = [answer(type), answer(type, { answers: [] }), answer(type, { flags: 0x8183 })];
    return foreignText(examples, ['\xc0\x0c', '\xc0\x00', '\0\x01\0\x01', '\0\x1c', '\x3f', '\xff\xff']);
  };
  // One of the two is as it should be in most inputs, so that the other one counts.
  const one = (type: 'A' | 'AAAA'): fc.Arbitrary<string> => fc.oneof(foreign(type), fc.constant(answer(type)));
  return fuzzer('DNS answers', fc.record({ A: one('A'), AAAA: one('AAAA') }), async ({ A, AAAA }) => {
    serve({ A: latin1(A), AAAA: latin1(AAAA) });
    const valid = A === answer('A') && AAAA === answer('AAAA');
    try {
      const found = await resolveHost(['https://one.example/dns-query'], HOST);
      must(found.length <= 65_536 / 5, 'addresses are not without end');
      for (const address of found) must(/^[0-9a-f:.]+$/i.test(address), 'an address is one');
      must(!valid || found.join(' ') === `${IPV4} ${IPV6}`, 'what was said is read');
      return found.length > 0 || 'no addresses';
    } catch (error) {
      must(error instanceof ResolverFault, `what cannot be read is a fault of the resolver, not ${String(error)}`);
      must(!valid, 'what is right is taken');
      return reasonOf(error.cause);
    }
  });
}

/** Of what a resolver said, or only that it was no packet at all: the words of its reader are without number. */
function reasonOf(cause: unknown): string {
  return cause instanceof ResolverFault ? cause.message : 'no packet';
}

function latin1(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'latin1'));
}

/** What stands at the resolver: a fetch that answers a question by its type. */
export function resolver(answers: Record<'A' | 'AAAA', Uint8Array>): typeof fetch {
  return async (_url, init) => {
    const query = init?.body as Uint8Array;
    const type = query[query.length - 3] === 28 ? 'AAAA' : 'A';
    return new Response(new Uint8Array(answers[type]), { headers: { 'content-type': 'application/dns-message' } });
  };
}
