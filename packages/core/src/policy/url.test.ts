import { describe, expect, it } from 'vitest';
import { isHttpsUrl } from './url.ts';

describe('a URL that can stand in a header', () => {
  it.each(['https://example.com', 'https://example.com/u?a=b&c=%20#x', 'https://xn--bcher-kva.example:8443/'])(
    'is %s',
    (url) => {
      expect(isHttpsUrl(url)).toBe(true);
    },
  );

  it.each([
    'http://example.com',
    'HTTPS//example.com',
    'ftp://example.com',
    'https:example.com',
    'https://',
    'https:///path',
    'https://bücher.example/',
    'https://écran.example/',
    'https://u@example.com/',
    'https://u:p@example.com/',
    'https://example.com/\n',
    'https://example.com/\t',
    'https://example.com/<x>',
    'https://example.com/"x"',
    ' https://example.com/',
    'https://exa mple.com/',
    'https://example.com:99999/',
    'https://[::1/',
    'https://%/',
    'https://?x',
    'https://\\example.com/',
    'https://example.com\\@example.org/',
  ])('is not %j', (url) => {
    expect(isHttpsUrl(url)).toBe(false);
  });

  it('fits on a header line', () => {
    expect(isHttpsUrl(`https://example.com/${'a'.repeat(1_980)}`)).toBe(true);
    expect(isHttpsUrl(`https://example.com/${'a'.repeat(1_981)}`)).toBe(false);
  });
});
