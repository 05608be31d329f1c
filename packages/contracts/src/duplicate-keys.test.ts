import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { duplicateKey } from './duplicate-keys.ts';

describe('a key that an object has twice', () => {
  test.each<[string, (string | number)[] | undefined]>([
    ['{"to":["a"],"to":["b"]}', ['to']],
    ['{ "a" : 1 , "b" : { "c" : [ { } , { "d" : 1 , "d"\t:\n2 } ] } }', ['b', 'c', 1, 'd']],
    ['[[1,"a",{}],{"x":{},"x":{}}]', [1, 'x']],
    ['{"a":1,"\\u0061":2}', ['a']],
    ['{"\\"":1,"\\u0022":2}', ['"']],
    ['{"\\\\":1,"\\\\\\"":2}', undefined],
    ['{"a\\\\":1,"a\\\\":2}', ['a\\']],
    ['{"":1,"":2}', ['']],
    ['{"__proto__":1,"__proto__":2}', ['__proto__']],
    ['{"constructor":1}', undefined],
    ['{"a":{"a":{"a":[]}},"b":"a"}', undefined],
    ['[{"a":1},{"a":1}]', undefined],
    ['{"a":"a","b":"a\\",\\"a\\":","c":["a","a"]}', undefined],
    ['{"a":[{"b":1}],"c":[{"b":1}],"a":1}', ['a']],
    ['"a"', undefined],
    ['7', undefined],
    ['[]', undefined],
  ])('%s: %j', (text, path) => {
    JSON.parse(text);
    expect(duplicateKey(text)).toEqual(path);
  });
});

type Tree = string | number | null | Tree[] | Entries;
interface Entries {
  entries: [string, Tree][];
}

const KEY = fc.oneof(
  fc.constantFrom('a', 'b', '"', '\\', '', '\\"', 'é', ':', '__proto__'),
  fc.string({ unit: 'binary' }),
);
const SCALAR: fc.Arbitrary<Tree> = fc.oneof(KEY, fc.constantFrom<Tree>(null, 0, -1.5, '{"a":1,"a":2}', '\\\\"', '}]'));
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    SCALAR,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.array(fc.tuple(KEY, tie('tree')), { maxLength: 5 }).map((entries) => ({ entries })),
  ),
}));

/** The tree as JSON, strings and blanks written in ways that change nothing. */
function written(value: Tree, odd: () => number): string {
  const blank = ['', '', ' ', '\n\t', '\r '][odd() % 5] ?? '';
  const word = (text: string): string =>
    odd() % 3 > 0
      ? JSON.stringify(text)
      : `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`;
  if (value === null || typeof value === 'number') return `${blank}${JSON.stringify(value)}`;
  if (typeof value === 'string') return `${blank}${word(value)}${blank}`;
  if (Array.isArray(value)) return `${blank}[${value.map((item) => written(item, odd)).join(',')}${blank}]`;
  const members = value.entries.map(([key, item]) => `${blank}${word(key)}${blank}:${written(item, odd)}`);
  return `{${members.join(',')}${blank}}${blank}`;
}

/** The same, told from the tree. */
function reference(value: Tree, path: (string | number)[]): (string | number)[] | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  const members = Array.isArray(value) ? value.map((item, i): [number, Tree] => [i, item]) : value.entries;
  const seen = new Set<string | number>();
  for (const [key, item] of members) {
    if (seen.has(key)) return [...path, key];
    seen.add(key);
    const inside = reference(item, [...path, key]);
    if (inside !== undefined) return inside;
  }
  return undefined;
}

test('is found in any JSON, however it is written', () => {
  let twice = 0;
  fc.assert(
    fc.property(tree, fc.infiniteStream(fc.nat(1_000)), (value, numbers) => {
      const text = written(value, () => numbers.next().value ?? 0);
      JSON.parse(text);
      const expected = reference(value, []);
      if (expected !== undefined) twice++;
      expect(duplicateKey(text)).toEqual(expected);
    }),
    { numRuns: 3_000 },
  );
  expect(twice).toBeGreaterThan(30);
});

test('is not found in what JSON.stringify writes', () => {
  fc.assert(fc.property(fc.json(), (text) => duplicateKey(text) === undefined));
});
