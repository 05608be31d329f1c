import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressHint, asciiLower, domainOf, localPartOf, parseAddress, parseDomain, withoutDetail } from './address.ts';

function address(input: string): string {
  const parsed = parseAddress(input);
  return parsed.ok ? parsed.address : `(${parsed.fault})`;
}

describe('an address', () => {
  it.each([
    ['jo@example.net', 'jo@example.net'],
    ['Jo.Doe@EXAMPLE.Net', 'jo.doe@example.net'],
    ['  jo@example.net ', 'jo@example.net'],
    ['jo+tag@example.net', 'jo+tag@example.net'],
    ["!#$%&'*+/=?^_`{|}~-@example.net", "!#$%&'*+/=?^_`{|}~-@example.net"],
    ['jo@example.net.', 'jo@example.net'],
    ['jo@bücher.example', 'jo@xn--bcher-kva.example'],
    ['jo@XN--BCHER-KVA.example', 'jo@xn--bcher-kva.example'],
    ['jo@例え.テスト', 'jo@xn--r8jz45g.xn--zckzah'],
    ['jo@ｅｘａｍｐｌｅ.net', 'jo@example.net'],
    ['jo@example。net', 'jo@example.net'],
    ['jo@1.2.example', 'jo@1.2.example'],
    ['"a b"@example.net', '"a b"@example.net'],
    ['"a@b"@example.net', '"a@b"@example.net'],
    ['"jo"@example.net', 'jo@example.net'],
    ['"j\\o"@example.net', 'jo@example.net'],
    ['"a\\ b"@example.net', '"a b"@example.net'],
    ['"a\\"b\\\\"@example.net', '"a\\"b\\\\"@example.net'],
    ['".jo"@example.net', '".jo"@example.net'],
  ])('%j is stored as %j', (input, stored) => {
    expect(address(input)).toBe(stored);
  });

  it.each([
    '',
    ' ',
    'jo',
    '@example.net',
    'jo@',
    'jo@localhost',
    'jo@example',
    'jo@.example.net',
    'jo@example..net',
    'jo@-example.net',
    'jo@example-.net',
    'jo@exa_mple.net',
    'jo@exa mple.net',
    'jo@example.net..',
    'jo@127.0.0.1',
    'jo@１２７.0.0.1',
    'jo@example.1',
    'jo@[192.0.2.1]',
    'jo@[IPv6:::1]',
    '.jo@example.net',
    'jo.@example.net',
    'j..o@example.net',
    'jo doe@example.net',
    'jo@doe@example.net',
    'jo,kim@example.net',
    'jo;kim@example.net',
    'Jo <jo@example.net>',
    '<jo@example.net>',
    'jo@example.net (Jo)',
    '(Jo)jo@example.net',
    'mailto:jo@example.net',
    '"jo@example.net',
    '"jo"x@example.net',
    '"a"b"@example.net',
    '"a\\"@example.net',
    'jo\\@example.net',
    'ö jo@example.net',
  ])('cannot be %j', (input) => {
    expect(address(input)).toBe('(invalid)');
  });

  it.each(['jö@example.net', '用户@例え.テスト', 'joédoe@example.net', '😀@example.net'])(
    'is told to be unsupported when only its local part is outside ASCII: %s',
    (input) => {
      expect(address(input)).toBe('(unsupported)');
    },
  );

  it.each([
    'jo@example.net\r\nBcc: x@example.org',
    'jo\r\n@example.net',
    'jo\n@example.net',
    'jo@example.net\n',
    '\tjo@example.net',
    'jo\u0000@example.net',
    'jo@example.net\u0000',
    '"jo\r\nRCPT TO:<x@example.org>"@example.net',
    '"jo\\\r\n"@example.net',
    'jo@example.net>\r\nRCPT TO:<x@example.org',
    'jo@example.net/../x',
    'jo@evil.example#example.net',
    'jo@evil.example?.example.net',
    'jo@evil.example:25',
    'jo@u:p@evil.example',
    'jo@exam%70le.net',
    'jo@é%2e.example.net',
    'jo@é\\.example.net',
    'jo@é:80',
    'jo@evil.é/example.net',
    'jo@evil.é?example.net',
    'jo@evil.é#example.net',
    'jo@evil.é:80',
    'jo@evil.é\\example.net',
    'jo@u@evil.é',
    'jo@evil.\té',
    'jo@[é.example.net]',
    'jo@%61.é',
    'jö\n@example.net',
    'jö<x>@example.net',
  ])('never carries an injection: %j', (input) => {
    expect(address(input)).toBe('(invalid)');
  });

  it('keeps the local part apart from letters that only fold to ASCII', () => {
    // The Kelvin sign.
    expect(address('\u212a@example.net')).toBe('(unsupported)');
    expect(asciiLower('K\u212aİ')).toBe('k\u212aİ');
  });
});

describe('lengths', () => {
  const label = (n: number): string => 'a'.repeat(n);

  it('64 octets before the @', () => {
    expect(address(`${label(64)}@example.net`)).toBe(`${label(64)}@example.net`);
    expect(address(`${label(65)}@example.net`)).toBe('(invalid)');
    expect(address(`"${label(61)} "@example.net`)).toBe(`"${label(61)} "@example.net`);
    expect(address(`"${label(62)} "@example.net`)).toBe('(invalid)');
  });

  it('63 octets a label', () => {
    expect(address(`jo@${label(63)}.net`)).toBe(`jo@${label(63)}.net`);
    expect(address(`jo@${label(64)}.net`)).toBe('(invalid)');
  });

  it('253 octets a domain, 254 characters in all', () => {
    const domain = (n: number): string => `${`${label(49)}.`.repeat(4)}${label(n - 200)}`;
    expect(parseDomain(domain(253))).toHaveLength(253);
    expect(parseDomain(`${domain(253)}.`)).toHaveLength(253);
    expect(parseDomain(domain(254))).toBeUndefined();
    expect(address(`jo@${domain(251)}`)).toHaveLength(254);
    expect(address(`jo@${domain(252)}`)).toBe('(invalid)');
  });

  it('counts the domain as it is written, in A-labels', () => {
    expect(parseDomain(`${'ü'.repeat(50)}.example`)).toMatch(/^xn--.{1,59}\.example$/);
    expect(parseDomain(`${'é中ü😀'.repeat(20)}.example`)).toBeUndefined();
  });

  it('very long input is refused at once', () => {
    expect(address(`${'('.repeat(1_000_000)}@example.net`)).toBe('(invalid)');
  });
});

describe('whatever is parsed', () => {
  const piece = fc.constantFrom(
    'a',
    'B',
    '1',
    '.',
    '@',
    '-',
    '+',
    '"',
    '\\',
    ' ',
    '(',
    '<',
    '\r',
    '\n',
    '\0',
    'é',
    '。',
    'ß',
    '😀',
    '%',
    'xn--',
  );
  const host = fc.constantFrom(
    'example.net',
    'Bücher.example',
    'a.b',
    'ｘ.example',
    'İ.example',
    'faß.de',
    'a\u00adb.example',
  );
  const input = fc.oneof(
    fc.array(piece, { maxLength: 30 }).map((parts) => parts.join('')),
    fc.tuple(fc.array(piece, { maxLength: 12 }), host).map(([parts, name]) => `${parts.join('')}@${name}`),
    fc.emailAddress(),
  );

  it('is stable: the stored form parses to itself', () => {
    fc.assert(
      fc.property(input, (text) => {
        const parsed = parseAddress(text);
        if (parsed.ok) expect(parseAddress(parsed.address)).toEqual(parsed);
      }),
      { numRuns: 3_000 },
    );
  });

  it('is printable ASCII within its bounds, one @ before the domain, lower case', () => {
    fc.assert(
      fc.property(input, (text) => {
        const parsed = parseAddress(text);
        if (!parsed.ok) return;
        const { address: stored } = parsed;
        expect(stored).toMatch(/^[\x20-\x7e]{1,64}@[a-z0-9.-]{3,253}$/);
        expect(stored).not.toMatch(/[A-Z]/);
        expect(stored.length).toBeLessThanOrEqual(254);
        expect(`${localPartOf(stored)}@${domainOf(stored)}`).toBe(stored);
        expect(parseDomain(domainOf(stored))).toBe(domainOf(stored));
        if (!stored.startsWith('"')) expect(stored).not.toMatch(/[\s<>(),:;\\"[\]]/);
      }),
      { numRuns: 3_000 },
    );
  });

  it('never makes the parser throw', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(typeof parseAddress(text).ok).toBe('boolean');
        expect(['string', 'undefined']).toContain(typeof parseDomain(text));
      }),
    );
  });

  it('takes every ordinary address', () => {
    fc.assert(
      fc.property(fc.emailAddress(), (text) => {
        expect(address(text)).toBe(asciiLower(text));
      }),
    );
  });
});

describe('the tag behind a plus', () => {
  it.each([
    ['user+tag@example.net', 'user@example.net'],
    ['user+a+b@example.net', 'user@example.net'],
    ['bookings.acme+t03k.9f2mq7xa@agents.example', 'bookings.acme@agents.example'],
    ['user@example.net', 'user@example.net'],
    ['user+@example.net', 'user@example.net'],
    ['+tag@example.net', '+tag@example.net'],
    ['"a+b c"@example.net', '"a+b c"@example.net'],
  ])('%s without it is %s', (tagged, plain) => {
    expect(withoutDetail(tagged)).toBe(plain);
    expect(withoutDetail(plain)).toBe(plain);
  });
});

describe('the hint of a hidden address', () => {
  it('shows the first character and the domain', () => {
    expect(addressHint('jo@example.com')).toBe('j***@example.com');
    expect(addressHint('"a@b"@example.com')).toBe('"***@example.com');
  });
});
