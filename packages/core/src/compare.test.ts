import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equalBytes } from './compare.ts';

describe('equalBytes', () => {
  it('is true exactly when length and every byte agree', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        expect(equalBytes(a, b)).toBe(a.length === b.length && a.every((byte, i) => byte === b[i]));
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (a) => {
        expect(equalBytes(a, a.slice())).toBe(true);
      }),
    );
  });

  it('sees a change of a single bit anywhere', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), fc.nat(), fc.nat(7), (a, at, bit) => {
        const b = a.slice();
        const i = at % a.length;
        b[i] = (b[i] ?? 0) ^ (1 << bit);
        expect(equalBytes(a, b)).toBe(false);
      }),
    );
  });

  it('takes a prefix for different', () => {
    expect(equalBytes(new Uint8Array([1, 2]), new Uint8Array([1, 2, 0]))).toBe(false);
    expect(equalBytes(new Uint8Array(), new Uint8Array())).toBe(true);
  });
});
