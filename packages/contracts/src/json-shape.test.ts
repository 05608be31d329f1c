import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BOUNDS } from './bounds.ts';
import { endOfString, jsonShapeFault } from './json-shape.ts';

const DEPTH = BOUNDS.json_depth_max;
const PARTS = BOUNDS.json_parts_max;
const lists = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
/** A list of so many members is as many parts: the list itself, and a comma between two. */
const members = (count: number, member = '0'): string => `[${Array.from({ length: count }, () => member).join(',')}]`;

describe('the shape of a text that may be JSON', () => {
  test.each([
    ['nothing', ''],
    ['as deep as may be', lists(DEPTH)],
    ['as deep, again and again', members(100, lists(DEPTH - 1))],
    ['as many parts as may be', members(PARTS)],
    ['brackets and commas in a string', JSON.stringify({ a: '[{,'.repeat(PARTS) })],
    ['behind an escaped quote', `{"a":"\\"${'['.repeat(DEPTH + 1)}","b":"\\\\\\"${','.repeat(PARTS)}"}`],
    ['in a key', `{"${'{['.repeat(PARTS)}":1}`],
    ['a string that nobody closes', `"${'['.repeat(PARTS)}`],
    ['a string that ends in an escape', `"${'['.repeat(PARTS)}\\"`],
    ['brackets that close nothing', ']'.repeat(PARTS * 2)],
  ])('is fine: %s', (_what, text) => {
    expect(jsonShapeFault(text)).toBeUndefined();
  });

  test.each([
    ['one level too many', lists(DEPTH + 1)],
    ['objects and lists', '[{"a":'.repeat(DEPTH / 2) + lists(1)],
    ['that nobody closes', '['.repeat(DEPTH + 1)],
    ['behind a string that ends in an escaped escape', `["\\\\",${lists(DEPTH)}]`],
    ['behind a string with a quote', `["\\"",${lists(DEPTH)}]`],
  ])('is too deep: %s', (_what, text) => {
    expect(jsonShapeFault(text)).toContain('nested');
  });

  test.each([
    ['members', members(PARTS + 1)],
    ['commas alone', ','.repeat(PARTS + 1)],
    ['empty objects', `[${'{}'.repeat(PARTS)}]`],
    ['short strings', members(PARTS + 1, '"\\\\"')],
  ])('has too many parts: %s', (_what, text) => {
    expect(jsonShapeFault(text)).toContain('more than');
  });

  test('any string ends where it ends for the parser', () => {
    const odd = fc.string({ unit: fc.constantFrom('"', '\\', '[', 'é', '\n', 'a') });
    fc.assert(
      fc.property(odd, odd, (text, rest) => {
        const json = JSON.stringify(text);
        expect(endOfString(`${json}${rest}`, 0)).toBe(json.length);
        expect(endOfString(json.slice(0, -1), 0)).toBeUndefined();
      }),
    );
  });
});
