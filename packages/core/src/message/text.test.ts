import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8Length } from '../hash.ts';
import { cutUnits, cutUtf8, snippetOf } from './text.ts';

const text = fc.string({
  unit: fc.oneof(fc.constantFrom(' ', '\n', '\ufeff', 'a', 'é', '中', '😀', '👩‍👩‍👧'), fc.string({ maxLength: 1 })),
  maxLength: 80,
});

describe('text cut to bytes', () => {
  it('is left alone when it fits', () => {
    expect(cutUtf8('éé', 4)).toEqual({ text: 'éé', cut: false });
    expect(cutUtf8('', 0)).toEqual({ text: '', cut: false });
  });

  it('is cut on a character boundary', () => {
    expect(cutUtf8('aéb', 2)).toEqual({ text: 'a', cut: true });
    expect(cutUtf8('aéb', 3)).toEqual({ text: 'aé', cut: true });
    expect(cutUtf8('😀😀', 7)).toEqual({ text: '😀', cut: true });
    expect(cutUtf8('😀', 3)).toEqual({ text: '', cut: true });
  });

  it('keeps a byte order mark, which is a character like others', () => {
    expect(cutUtf8('\ufeffabc', 5)).toEqual({ text: '\ufeffab', cut: true });
  });

  it('is the longest start that fits', () => {
    fc.assert(
      fc.property(text, fc.nat(100), (value, max) => {
        const { text: start, cut } = cutUtf8(value, max);
        expect(value.startsWith(start)).toBe(true);
        expect(utf8Length(start)).toBeLessThanOrEqual(max);
        expect(start.isWellFormed()).toBe(true);
        expect(cut).toBe(start !== value);
        const next = Array.from(value.slice(start.length))[0];
        if (next !== undefined) expect(utf8Length(start + next)).toBeGreaterThan(max);
      }),
    );
  });
});

describe('text cut to units', () => {
  it('never ends within a character', () => {
    expect(cutUnits('a😀', 3)).toBe('a😀');
    expect(cutUnits('a😀', 2)).toBe('a');
    expect(cutUnits('a😀b', 3)).toBe('a😀');
    expect(cutUnits('\u{10000}x', 1)).toBe('');
    expect(cutUnits('\u{10fc00}x', 1)).toBe('');
    expect(cutUnits('\ud7ffxx', 1)).toBe('\ud7ff');
    expect(cutUnits('\ue000xx', 1)).toBe('\ue000');
    fc.assert(
      fc.property(text, fc.nat(100), (value, max) => {
        const start = cutUnits(value, max);
        expect(value.startsWith(start)).toBe(true);
        expect(start.length).toBeLessThanOrEqual(max);
        expect(start.length).toBeGreaterThanOrEqual(Math.min(value.length, max) - 1);
        expect(start.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe('a snippet', () => {
  it('is one line of at most 240 characters', () => {
    expect(snippetOf('Hello\r\n\r\n  Jo,\tnice\u00a0day \n')).toBe('Hello Jo, nice day');
    expect(snippetOf('a'.repeat(300))).toBe('a'.repeat(240));
    expect(snippetOf('😀'.repeat(300))).toBe('😀'.repeat(240));
    expect(snippetOf(`${'a'.repeat(239)} b`)).toBe('a'.repeat(239));
    expect(snippetOf('')).toBe('');
  });

  it('finds the text behind any number of blank lines', () => {
    expect(snippetOf(`${'\n'.repeat(5_000)}Hello`)).toBe('Hello');
  });

  it('never ends with half a character', () => {
    expect(snippetOf(`${'x '.repeat(10)}${' '.repeat(1_899)}😀`)).toBe('x x x x x x x x x x');
  });

  it('is one clean line whatever the text', () => {
    fc.assert(
      fc.property(fc.array(text), (parts) => {
        const snippet = snippetOf(parts.join('\n'));
        expect(Array.from(snippet).length).toBeLessThanOrEqual(240);
        expect(snippet).toBe(snippet.trim());
        expect(snippet).not.toMatch(/[\r\n\t]| {2}/);
        expect(snippet.isWellFormed()).toBe(true);
        expect(snippetOf(snippet)).toBe(snippet);
      }),
    );
  });
});
