import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../canonical-json.ts';
import { sha256Hex } from '../hash.ts';
import { IDEMPOTENCY_KEY, SEND_OPERATIONS, sendFingerprint } from './request.ts';

const IDENTITY = 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9T';

/** A body like those of the API: nested, with lists, in one fixed order of members. */
const body = fc.record({
  to: fc.array(fc.emailAddress(), { minLength: 1, maxLength: 3 }),
  subject: fc.string(),
  text: fc.string({ unit: 'grapheme' }),
  labels: fc.array(fc.string()),
  metadata: fc.dictionary(fc.string(), fc.string()),
  include_attachments: fc.boolean(),
}) satisfies fc.Arbitrary<Json>;

function parse(text: string): Json {
  return JSON.parse(text) as Json;
}

describe('the fingerprint of a send', () => {
  it('is the hex SHA-256 over body, operation and target in canonical form', async () => {
    const canonical = `{"body":{"text":"Hi","to":["jo@example.net"]},"operation":"send","target":"${IDENTITY}"}`;
    const fingerprint = await sendFingerprint('send', IDENTITY, { to: ['jo@example.net'], text: 'Hi' });
    expect(fingerprint).toBe(await sha256Hex(canonical));
    expect(fingerprint).toMatch(/^[0-9a-f]{64}$/);
  });

  it('does not depend on the order of keys or on white space', async () => {
    await fc.assert(
      fc.asyncProperty(body, fc.integer({ min: 0, max: 8 }), async (value, space) => {
        const reversed = Object.fromEntries(Object.entries(value).toReversed()) as Json;
        const spaced = parse(JSON.stringify(reversed, null, space));
        expect(await sendFingerprint('send', IDENTITY, spaced)).toBe(await sendFingerprint('send', IDENTITY, value));
      }),
    );
  });

  it('depends on every value, on the order of a list, on operation and target', async () => {
    await fc.assert(
      fc.asyncProperty(body, async (value) => {
        const base = await sendFingerprint('send', IDENTITY, value);
        const others: Json[] = [
          { ...value, subject: `${value.subject} ` },
          { ...value, text: `${value.text}.` },
          { ...value, to: [...value.to, 'more@example.net'] },
          { ...value, labels: ['x', ...value.labels] },
          { ...value, metadata: { ...value.metadata, k: `${value.metadata['k'] ?? ''}x` } },
          { ...value, include_attachments: !value.include_attachments },
          { ...value, kind: 'transactional' },
          Object.fromEntries(Object.entries(value).slice(1)) as Json,
        ];
        for (const other of others) expect(await sendFingerprint('send', IDENTITY, other)).not.toBe(base);
        expect(await sendFingerprint('forward', IDENTITY, value)).not.toBe(base);
        expect(await sendFingerprint('send', `${IDENTITY}/msg_1`, value)).not.toBe(base);
      }),
    );
    const list = (to: string[]) => sendFingerprint('send', IDENTITY, { to });
    expect(await list(['a@example.net', 'b@example.net'])).not.toBe(await list(['b@example.net', 'a@example.net']));
  });

  it('takes the body as received: nothing that means the same is made the same', async () => {
    const of = (value: Json) => sendFingerprint('send', IDENTITY, value);
    expect(await of({ to: ['JO@example.net'] })).not.toBe(await of({ to: ['jo@example.net'] }));
    expect(await of({ text: 'é' })).not.toBe(await of({ text: 'e\u0301' }));
    expect(await of({ kind: 'transactional' })).not.toBe(await of({}));
    expect(await of({ n: 1 })).not.toBe(await of({ n: '1' }));
    expect(await of({ n: null })).not.toBe(await of({}));
    expect(await of(parse('{"n":1.0}'))).toBe(await of(parse('{"n":1}')));
  });

  it('tells the four operations apart', async () => {
    const all = await Promise.all(SEND_OPERATIONS.map((operation) => sendFingerprint(operation, IDENTITY, {})));
    expect(new Set(all).size).toBe(4);
  });
});

describe('an idempotency key', () => {
  it.each(['a', ' ', '~', ' key with spaces ', 'bk-2291-confirm', 'x'.repeat(255)])('may be %j', (key) => {
    expect(IDEMPOTENCY_KEY.test(key)).toBe(true);
  });

  it.each(['', 'x'.repeat(256), 'tab\t', 'line\n', '\n', 'nul\u0000', 'del\u007f', 'é', '😀'])(
    'cannot be %j',
    (key) => {
      expect(IDEMPOTENCY_KEY.test(key)).toBe(false);
    },
  );
});
