import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8Length } from '../hash.ts';
import { normalizeMessageId, parseMessageIds } from './message-id.ts';

const OURS = '01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com';

describe('one message id', () => {
  it.each([
    ['<a@example.net>', 'a@example.net'],
    ['a@example.net', 'a@example.net'],
    [' <a@example.net> ', 'a@example.net'],
    ['<A.b@Example.NET>', 'A.b@example.net'],
    ['<a@b@Example.NET>', 'a@b@example.net'],
    ['<@Example.NET>', '@example.net'],
    ['<a@exam\r\n ple.net>', 'a@example.net'],
    ['< a @ example.net >', 'a@example.net'],
    ['<a@example.net> (comment)', 'a@example.net'],
    ['(see <x@y>) <a@example.net>', 'a@example.net'],
    ['((nested) <x@y>) <a@example.net>', 'a@example.net'],
    ['<a@example.net> <b@example.net>', 'a@example.net'],
    ['<a@example.net', 'a@example.net'],
    ['a@example.net>', 'a@example.net'],
    ['<"a b"@example.net>', '"ab"@example.net'],
  ])('%j is %j', (token, id) => {
    expect(normalizeMessageId(token)).toBe(id);
  });

  it('is kept without an @, for matching within a mailbox', () => {
    expect(normalizeMessageId('<0101019ab3c4-MSG>')).toBe('0101019ab3c4-MSG');
  });

  it.each(['', ' ', '<>', '< >', '<> <a@example.net>', '()', '(a@b)', '<\u0000@example.net>', '<a\u007f@example.net>'])(
    'is nothing in %j',
    (token) => {
      expect(normalizeMessageId(token)).toBeUndefined();
    },
  );

  it('has at most 998 bytes', () => {
    const domain = '@example.net';
    const longest = 'a'.repeat(998 - domain.length) + domain;
    expect(normalizeMessageId(`<${longest}>`)).toBe(longest);
    expect(normalizeMessageId(`<a${longest}>`)).toBeUndefined();
    expect(normalizeMessageId(`<${'é'.repeat(493)}${domain}>`)).toBe(`${'é'.repeat(493)}${domain}`);
    expect(normalizeMessageId(`<${'é'.repeat(494)}${domain}>`)).toBeUndefined();
  });

  const piece = fc.constantFrom('a', 'B', '@', '.', '<', '>', '(', ')', ' ', '\r\n', '\t', 'é', 'İ', '\0');

  it('is what its normal form is', () => {
    fc.assert(
      fc.property(fc.string({ unit: piece, maxLength: 30 }), (token) => {
        const id = normalizeMessageId(token);
        if (id === undefined) return;
        expect(normalizeMessageId(id)).toBe(id);
        expect(normalizeMessageId(`<${id}>`)).toBe(id);
        expect(id).not.toMatch(/[\s<>\0]/);
        expect(utf8Length(id)).toBeLessThanOrEqual(998);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a header of message ids', () => {
  it.each([
    ['nothing between them', `<root@example.net><${OURS}>`],
    ['a comma', `<root@example.net>,<${OURS}>`],
    ['a comment that holds something like an id', `<root@example.net> (was: x <y@z>) <${OURS}>`],
    ['a folded line', `<root@example.net>\r\n\t<${OURS}>`],
    ['a nested comment', `<root@example.net> (a (b <y@z>) c <y@z>) <${OURS}>`],
    ['a comment that touches both', `<root@example.net>(c)<${OURS}>`],
    ['a bracket that closes nothing', `<root@example.net> :-) (was: <y@z>) <${OURS}>`],
    ['words', `Message of Jo <root@example.net> and <${OURS}>`],
  ])('comes apart with %s', (_what, header) => {
    expect(parseMessageIds(header)).toEqual(['root@example.net', OURS]);
  });

  it('keeps order and repeats', () => {
    expect(parseMessageIds('<b@x> <a@x> <b@x>')).toEqual(['b@x', 'a@x', 'b@x']);
  });

  it('skips what is no id and keeps the rest', () => {
    expect(parseMessageIds(`<> <a@x> < > <${'a'.repeat(999)}> <b@x>`)).toEqual(['a@x', 'b@x']);
  });

  it('is split at blanks when nothing stands in brackets', () => {
    expect(parseMessageIds('a@x  b@x')).toEqual(['a@x', 'b@x']);
  });

  it('does not lose the ids behind a comment that never ends', () => {
    expect(parseMessageIds('<a@x> (oops <b@x>')).toEqual(['a@x', 'b@x']);
  });

  it('may be empty', () => {
    expect(parseMessageIds('')).toEqual([]);
    expect(parseMessageIds(' \r\n ')).toEqual([]);
  });

  it('reads back what we write', () => {
    const id = fc
      .tuple(fc.stringMatching(/^[A-Za-z0-9.+-]{1,20}$/), fc.domain())
      .map(([local, domain]) => `${local}@${domain.toLowerCase()}`);
    fc.assert(
      fc.property(fc.array(id), fc.constantFrom(' ', '', '\r\n ', ', '), (ids, between) => {
        expect(parseMessageIds(ids.map((entry) => `<${entry}>`).join(between))).toEqual(ids);
      }),
    );
  });
});
