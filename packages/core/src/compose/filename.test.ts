import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8Length } from '../hash.ts';
import { boundFilename, cleanFilename } from './filename.ts';

const MAX = 255;

const name = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '.',
      ' ',
      '/',
      '\\',
      '\0',
      '\r',
      '\n',
      '\u202e',
      '\u0085',
      '\ufeff',
      '\u00a0',
      'a',
      'é',
      '請',
      '😀',
    ),
    fc.constantFrom('.pdf', '.tar.gz', 'x'.repeat(40), '請求書'.repeat(10)),
  ),
  maxLength: 40,
});

describe('a clean file name', () => {
  it.each([
    ['résumé.pdf', 'résumé.pdf'],
    ['請求書 2026 "最終" (1); v=2.xlsx', '請求書 2026 "最終" (1); v=2.xlsx'],
    ['archive.tar.gz', 'archive.tar.gz'],
    ['no ending', 'no ending'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\jo\\a.pdf', 'a.pdf'],
    ['a\\b/c.pdf', 'c.pdf'],
    ['a\r\nContent-Type: text/html.pdf', 'html.pdf'],
    ['a\r\nX: y.pdf', 'aX: y.pdf'],
    ['a\u0000b\u007f.pdf', 'ab.pdf'],
    ['invoice\u202efdp.exe', 'invoicefdp.exe'],
    ['\ufeffa.pdf', 'a.pdf'],
    ['  a.pdf  ', 'a.pdf'],
    ['.htaccess', 'htaccess'],
    ['..a..pdf..', 'a..pdf'],
    ['a. .', 'a'],
    ['. . a. . b . .', 'a. . b'],
  ])('of %j is %j', (given, cleaned) => {
    expect(cleanFilename(given, 'application/pdf')).toBe(cleaned);
  });

  it.each([
    ['application/pdf', 'attachment.pdf'],
    ['IMAGE/PNG', 'attachment.png'],
    ['text/plain', 'attachment.txt'],
    ['application/octet-stream', 'attachment'],
    ['constructor', 'attachment'],
  ])('is made up by type when nothing is left: %s', (type, made) => {
    for (const given of ['', '.', '...', ' ', '/', 'a/', '\r\n', '. \u202e .']) {
      expect(cleanFilename(given, type)).toBe(made);
    }
  });

  it('needs no further cleaning', () => {
    fc.assert(
      fc.property(name, (given) => {
        const cleaned = cleanFilename(given, 'application/pdf');
        expect(cleanFilename(cleaned, 'application/pdf')).toBe(cleaned);
      }),
    );
  });

  it('has no path, no control characters, no dot or blank at either end', () => {
    fc.assert(
      fc.property(name, (given) => {
        const cleaned = cleanFilename(given, 'application/pdf');
        expect(cleaned).not.toMatch(/[/\\\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
        expect(cleaned).not.toMatch(/^[.\s]|[.\s]$/);
        expect(cleaned).not.toBe('');
      }),
    );
  });

  it('does not take long for a long run of dots and blanks', () => {
    expect(cleanFilename(`a${'. '.repeat(200_000)}b`, 'application/pdf').length).toBe(400_002);
  });
});

describe('a name cut to 255 bytes', () => {
  it('is left alone when it fits', () => {
    expect(boundFilename('a.pdf')).toBe('a.pdf');
    expect(boundFilename('é'.repeat(127))).toBe('é'.repeat(127));
  });

  it('keeps its ending and whole characters', () => {
    expect(boundFilename(`${'請'.repeat(100)}.pdf`)).toBe(`${'請'.repeat(83)}.pdf`);
    expect(boundFilename(`${'😀'.repeat(100)}.xlsx`)).toBe(`${'😀'.repeat(62)}.xlsx`);
    expect(boundFilename('x'.repeat(300))).toBe('x'.repeat(255));
  });

  it('keeps an ending of at most 16 bytes', () => {
    const ending = `.${'e'.repeat(15)}`;
    expect(boundFilename(`${'x'.repeat(300)}${ending}`)).toBe(`${'x'.repeat(239)}${ending}`);
    expect(boundFilename(`${'x'.repeat(300)}${ending}e`)).toBe('x'.repeat(255));
  });

  it('does not keep an ending that is as long as a name', () => {
    expect(boundFilename(`a.${'x'.repeat(300)}`)).toBe(`a.${'x'.repeat(253)}`);
  });

  it('does not end with the dots and blanks where it was cut', () => {
    expect(boundFilename(`${'x'.repeat(250)} .  . ${'y'.repeat(100)}`)).toBe('x'.repeat(250));
    expect(boundFilename(`${'x'.repeat(249)}. .${'y'.repeat(100)}.pdf`)).toBe(`${'x'.repeat(249)}.pdf`);
  });

  it('fits, is whole, and stays clean', () => {
    fc.assert(
      fc.property(name, (given) => {
        const cleaned = cleanFilename(given, 'application/pdf');
        const bounded = boundFilename(cleaned);
        expect(utf8Length(bounded)).toBeLessThanOrEqual(MAX);
        expect(bounded.isWellFormed()).toBe(true);
        expect(boundFilename(bounded)).toBe(bounded);
        expect(cleanFilename(bounded, 'application/pdf')).toBe(bounded);
        if (utf8Length(cleaned) <= MAX) expect(bounded).toBe(cleaned);
      }),
    );
  });
});
