import fc from 'fast-check';
import { decodeWords as parsersDecodeWords } from 'postal-mime';
import { expect, it } from 'vitest';
import { decodeWords, isEncoded } from './decode-words.ts';

const PIECE = fc.constantFrom(
  ...[
    '=?utf-8?B?YWJj?=',
    '=?utf-8?b?YWI=?=',
    '=?utf-8?B?w6?=',
    '=?utf-8?B??=',
    '=?utf-8?B?YQ?=',
    '=?iso-8859-1?B?/A==?=',
  ],
  ...['=?utf-8?Q?a_b?=', '=?UTF-8?q?=C3?=', '=?utf-8?Q?=BC?=', '=?utf-8?Q??=', '=?x?Q?=FF?=', '=?utf-8*en?Q?= 4_1?='],
  ...[' ', '  ', '\t', '\u00a0', 'a', '=?', '?=', '?', '=', '=?utf-8?B?', '=?utf-8?X?a?=', '=? ?B?YQ==?=', '\ufffd'],
);

it('decodes what the parser decodes', () => {
  fc.assert(
    fc.property(fc.array(PIECE, { maxLength: 20 }), (pieces) => {
      const value = pieces.join('');
      expect(decodeWords(value)).toBe(parsersDecodeWords(value));
    }),
    { numRuns: 2_000 },
  );
});

it.each([
  ['=?utf-8?Q?a?=', true],
  ['=?utf-8?Q?a?= =?utf-8?B?YQ==?= ', true],
  ['=?utf-8?Q?a?= b', false],
  ['', false],
  [' ', false],
])('whether %j is made of encoded-words alone: %s', (value, encoded) => {
  expect(isEncoded(value)).toBe(encoded);
});

// Joined one by one, these take minutes.
it.each(['=?utf-8?B?YWJj?= ', '=?utf-8?Q?abc?= '])('joins a megabyte of %s', (word) => {
  const count = 100_000;
  expect(decodeWords(word.repeat(count))).toBe(`${'abc'.repeat(count)} `);
});
