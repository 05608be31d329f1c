import fc from 'fast-check';
import { expect, it } from 'vitest';
import { withoutAround, withoutTrailing } from './trim.ts';

const text = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', 'a', '\u00a0') });

it('takes off what a pattern would', () => {
  fc.assert(
    fc.property(text, (value) => {
      expect(withoutTrailing(value, ' \t')).toBe(value.replace(/[ \t]+$/, ''));
      expect(withoutAround(value, '\n')).toBe(value.replace(/^\n+|\n+$/g, ''));
    }),
  );
});
