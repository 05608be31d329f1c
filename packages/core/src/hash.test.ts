import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fromBase64,
  fromBase64Url,
  hmacSha256,
  importHmacKey,
  isBase64,
  sha256,
  sha256Hex,
  signHmac,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
  utf8Length,
} from './hash.ts';

const bytes = fc.uint8Array({ maxLength: 200 });

function own(data: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(data);
}

describe('UTF-8', () => {
  it('counts bytes', () => {
    expect(utf8Length('aé中😀')).toBe(1 + 2 + 3 + 4);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(utf8Length(text)).toBe(utf8(text).length);
      }),
    );
  });
});

describe('SHA-256', () => {
  it.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  ])('of %j', async (text, hex) => {
    expect(await sha256Hex(text)).toBe(hex);
    expect(toHex(await sha256(utf8(text)))).toBe(hex);
  });
});

describe('HMAC-SHA256', () => {
  it('gives the values of RFC 4231', async () => {
    const first = await hmacSha256(new Uint8Array(20).fill(0x0b), 'Hi There');
    expect(toHex(first)).toBe('b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7');
    const second = await signHmac(await importHmacKey(utf8('Jefe')), utf8('what do ya want for nothing?'));
    expect(toHex(second)).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843');
  });
});

describe('base64', () => {
  it.each([
    ['', ''],
    ['f', 'Zg=='],
    ['fo', 'Zm8='],
    ['foo', 'Zm9v'],
    ['foobar', 'Zm9vYmFy'],
  ])('of %j is %j', (text, encoded) => {
    expect(toBase64(utf8(text))).toBe(encoded);
    expect(fromBase64(encoded)).toEqual(utf8(text));
  });

  it.each(['A', 'AA', 'AAA', 'A===', '====', 'AA=A', '=AAA', 'AA==AAAA', 'AAAA\n', 'AA AA', 'AA-_', 'ÄÄÄÄ', 'AAAAA'])(
    'cannot be %j',
    (text) => {
      expect(isBase64(text)).toBe(false);
      expect(fromBase64(text)).toBeUndefined();
    },
  );

  it('gives any bytes back, large ones too', () => {
    fc.assert(
      fc.property(bytes, (data) => {
        expect(fromBase64(toBase64(data))).toEqual(own(data));
      }),
    );
    const large = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 31) & 255);
    expect(fromBase64(toBase64(large))).toEqual(large);
  });

  it('never throws, and takes exactly what is valid', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.base64String(), fc.string({ unit: fc.constantFrom('A', '=', '+') })),
        (text) => {
          expect(fromBase64(text) !== undefined).toBe(isBase64(text));
        },
      ),
    );
  });
});

describe('base64url', () => {
  it('has no padding and no characters that a URL would change', () => {
    expect(toBase64Url(new Uint8Array([0xfb, 0xff, 0xfe]))).toBe('-__-');
    expect(toBase64Url(new Uint8Array([0xff]))).toBe('_w');
  });

  it('gives any bytes back', () => {
    fc.assert(
      fc.property(bytes, (data) => {
        const text = toBase64Url(data);
        expect(text).toMatch(/^[A-Za-z0-9_-]*$/);
        expect(fromBase64Url(text)).toEqual(own(data));
      }),
    );
  });

  it('has one spelling for each value', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'AQgwZ019-_=+/ '.split('')), maxLength: 12 }), (text) => {
        const data = fromBase64Url(text);
        if (data !== undefined) expect(toBase64Url(data)).toBe(text);
      }),
    );
    // The last two bits of "_x" stand for nothing.
    expect(fromBase64Url('_w')).toEqual(new Uint8Array([0xff]));
    expect(fromBase64Url('_x')).toBeUndefined();
  });

  it.each(['A', 'AA==', 'A+', 'A/', 'AA\n', 'AAAAA'])('cannot be %j', (text) => {
    expect(fromBase64Url(text)).toBeUndefined();
  });
});

describe('hex', () => {
  it('has two lower-case digits a byte', () => {
    expect(toHex(new Uint8Array([0, 15, 16, 255]))).toBe('000f10ff');
    expect(toHex(new Uint8Array())).toBe('');
  });
});
