import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes, utf8 } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { dotStuffed, wireSize } from './body.ts';

const text = (bytes: Uint8Array): string => String.fromCharCode(...bytes);

function wire(mime: string): string {
  return text(concatBytes(...dotStuffed(utf8(mime))));
}

describe('a message on its way', () => {
  test.each([
    ['a\r\nb\r\n', 'a\r\nb\r\n'],
    ['a', 'a\r\n'],
    ['', ''],
    ['.', '..\r\n'],
    ['.\r\n', '..\r\n'],
    ['..\r\n.a\r\na.\r\n', '...\r\n..a\r\na.\r\n'],
    ['a\nb', 'a\r\nb\r\n'],
    ['a\rb', 'a\r\nb\r\n'],
    ['a\r\rb', 'a\r\n\r\nb\r\n'],
    ['a\n\rb', 'a\r\n\r\nb\r\n'],
    ['a\n.\nMAIL FROM:<x@y>\n', 'a\r\n..\r\nMAIL FROM:<x@y>\r\n'],
    ['a\r.\rb', 'a\r\n..\r\nb\r\n'],
    ['a\r\n.\r\n', 'a\r\n..\r\n'],
    ['a\n.\r\nb', 'a\r\n..\r\nb\r\n'],
    ['\r\n', '\r\n'],
  ])('%j is written as %j', (mime, expected) => {
    expect(wire(mime)).toBe(expected);
  });

  test('never ends early, is ended, and comes back as it was; seed 4471', () => {
    const parts = fc.constantFrom('.', '..', '\r', '\n', '\r\n', 'a', '\r\n.\r\n', '\n.\n', '\0', '\xff');
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 60 }), (list) => {
        const mime = Uint8Array.from(list.join(''), (char) => char.charCodeAt(0));
        const sent = text(concatBytes(...dotStuffed(mime)));
        expect(`\r\n${sent}`).not.toMatch(/\r\n\.\r\n/);
        expect(sent).not.toMatch(/[^\r]\n|\r[^\n]|^\n|\r$/);
        const meant = list.join('').replace(/\r\n|\r|\n/g, '\r\n');
        const whole = meant === '' || meant.endsWith('\r\n') ? meant : `${meant}\r\n`;
        expect(sent.replace(/(^|\r\n)\./g, '$1')).toBe(whole);
        expect(wireSize(mime)).toBe(whole.length);
      }),
      { seed: 4471, numRuns: 3_000 },
    );
  });

  test('goes in pieces of bounded size, wherever lines and dots are cut', () => {
    for (const line of ['.\r\n', '.', '\n', `${'x'.repeat(76)}\r\n`, '.x\r\n']) {
      const mime = utf8(line.repeat(100_000));
      const pieces = [...dotStuffed(mime)];
      expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(LIMITS.smtp_body_chunk_bytes + 2);
      expect(pieces.length).toBeGreaterThan(1);
      const whole = concatBytes(...pieces);
      expect(whole.length).toBeGreaterThanOrEqual(wireSize(mime));
      expect(text(whole.subarray(-2))).toBe('\r\n');
    }
  });
});
