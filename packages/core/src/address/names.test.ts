import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codePoints, hasControlCharacter, hasLoneSurrogate, withoutMarks } from './names.ts';

describe('control characters', () => {
  it('are C0, DEL, C1 and the line separators of Unicode', () => {
    for (let code = 0; code <= 0xffff; code++) {
      const control = code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029;
      if (hasControlCharacter(String.fromCharCode(code)) !== control) expect({ code, control }).toBeNull();
    }
    expect(hasControlCharacter('Jo Doe, Köln 😀')).toBe(false);
    expect(hasControlCharacter('Jo\r\nBcc: x')).toBe(true);
  });
});

describe('characters', () => {
  it('are counted as code points', () => {
    expect(codePoints('')).toBe(0);
    expect(codePoints('aé中😀')).toBe(4);
    expect(codePoints('\u{10000}\u{103ff}\u{10fc00}\u{10ffff}\ue000')).toBe(5);
    expect(codePoints('\ud83d')).toBe(1);
    expect(codePoints('\ude00\ud83d')).toBe(2);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '😀', '\ud83d', '\ude00') }), (text) => {
        expect(codePoints(text)).toBe(Array.from(text).length);
      }),
    );
  });
});

describe('byte order marks', () => {
  it('are no part of a text', () => {
    expect(withoutMarks('\ufeffa\ufeff b\ufeff')).toBe('a b');
    expect(withoutMarks('\ufffe\u200b')).toBe('\ufffe\u200b');
  });
});

describe('half characters', () => {
  it('are surrogates without their partner', () => {
    for (const text of ['\ud83d', '\ude00', 'a\ud83db', '\ude00\ud83d']) expect(hasLoneSurrogate(text)).toBe(true);
    for (const text of ['', 'a', '😀', '\ufffd']) expect(hasLoneSurrogate(text)).toBe(false);
  });
});
