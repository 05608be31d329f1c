import { ROUTES, type RouteId } from '@pmail/contracts/routes.ts';
import { parseBody } from '@pmail/contracts/validate.ts';
import { createIdFactory } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
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

/** A request as far as cursors need one, with a directory that holds nothing but their signing key. */
function cursorRequest(): RequestContext {
  const rows: Record<string, SqlValue>[] = [];
  const db: Db = {
    batch: async (statements) =>
      statements.map(({ sql, bindings }) => {
        if (!sql.startsWith('INSERT')) return rows;
        const [purpose = '', kid = '', ciphertext = '', created_at = 0] = bindings;
        if (rows.length === 0) rows.push({ purpose, kid, ciphertext, created_at, verify_until: null });
        return [];
      }),
  };
  return {
    env: {},
    db,
    key: { id: newId('key', AT) },
    now: AT,
    config: { master_key: new Uint8Array(32) },
  } as unknown as RequestContext;
}

const LIST = 'messages.list' satisfies RouteId;
const INPUT = { params: { identity_id: newId('idn', AT) }, query: {} };

export async function cursors(): Promise<Fuzzer> {
  const context = cursorRequest();
  const positions = [
    { at: AT, id: newId('msg', AT) },
    { at: 0, id: 'x' },
  ];
  const written = await Promise.all(positions.map((position) => writeCursor(context, LIST, INPUT, position)));
  const known = written.map((cursor) => cursor ?? '');
  const wrong = await writeCursor(
    { ...context, now: AT - 2 * LIMITS.cursor_age_ms_max },
    LIST,
    INPUT,
    positions[0] ?? null,
  );
  const examples = [...known, wrong ?? '', 'c_', 'c_0', 'null'];
  return fuzzer('cursors', foreignText(examples, ['c_', '-', '_', '=', '0', '1', '.']), async (cursor) => {
    const read = await readCursor(context, LIST, { ...INPUT, query: { cursor } });
    if (!read.ok) {
      must(['invalid_request', 'cursor_expired'].includes(read.code), 'a refusal has a code of its own');
      return false;
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

export const bodies: Fuzzer = fuzzer(
  'request bodies',
  fc.record({
    bytes: foreignBytes([JSON.stringify(SEND), '{}', '[]', '"x"', `${'['.repeat(3_000)}`], WORDS),
    type: fc.constantFrom(
      'application/json',
      'application/json; charset=utf-8',
      'application/x+json',
      'text/plain',
      '',
    ),
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
      return false;
    }
    checkBody(read.value);
    return true;
  },
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

function answer(type: 'A' | 'AAAA', changes: object = {}): string {
  const data = type === 'A' ? '93.184.216.34' : '2606:2800:21f::1';
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
    try {
      const found = await resolveHost(['https://one.example/dns-query'], HOST);
      must(found.length <= 65_536 / 5, 'addresses are not without end');
      for (const address of found) must(/^[0-9a-f:.]+$/i.test(address), 'an address is one');
      return found.length > 0;
    } catch (error) {
      must(error instanceof ResolverFault, `what cannot be read is a fault of the resolver, not ${String(error)}`);
      return false;
    }
  });
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
