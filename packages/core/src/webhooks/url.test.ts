import { describe, expect, test } from 'vitest';
import { endpointUrlFault } from './url.ts';

const RULES = { api_host: 'api.agents.example.com', platform_domain: 'agents.example.org', allow_loopback: false };
const LOCAL = { ...RULES, allow_loopback: true };

describe('an endpoint', () => {
  test.each([
    'https://hooks.acme.com',
    'https://hooks.acme.com/',
    'https://hooks.acme.com/pmail?x=1&y=%20',
    'https://hooks.acme.com:443/a',
    'https://hooks.acme.com:1024/a',
    'https://hooks.acme.com:65535/a',
    'https://HOOKS.Acme.COM/a',
    'https://xn--bcher-kva.example.net/a',
    'https://hooks.acme.com./a',
    'https://a-b.c1.co/a',
  ])('may be %s', (url) => {
    expect(endpointUrlFault(url, RULES)).toBeNull();
  });

  // Every notation in which somebody might spell an address, a private name or a trick.
  test.each([
    ['http://hooks.acme.com/', 'https'],
    ['ftp://hooks.acme.com/', 'https'],
    ['hooks.acme.com/a', 'https'],
    ['//hooks.acme.com/a', 'https'],
    ['https:hooks.acme.com/a', 'https'],
    ['https:///hooks.acme.com/a', 'https'],
    ['https://\\hooks.acme.com/a', 'https'],
    ['https://hooks.acme.com\\@evil.com/a', 'https'],
    [' https://hooks.acme.com/a', 'https'],
    ['https://hooks.acme.com/a b', 'https'],
    ['https://hooks.acme.com/\na', 'https'],
    ['https://hööks.acme.com/a', 'https'],
    ['javascript:alert(1)', 'https'],
    ['', 'https'],
    ['https://user@hooks.acme.com/', 'user name'],
    ['https://user:pw@hooks.acme.com/', 'user name'],
    ['https://@hooks.acme.com/', 'user name'],
    ['https://hooks.acme.com/#part', 'fragment'],
    ['https://hooks.acme.com/#', 'fragment'],
    ['https://hooks.acme.com:80/', 'port'],
    ['https://hooks.acme.com:22/', 'port'],
    ['https://hooks.acme.com:1023/', 'port'],
    ['https://hooks.acme.com:0/', 'port'],
    ['https://hooks.acme.com:65536/', 'https'],
    [`https://hooks.acme.com/${'a'.repeat(2_048)}`, 'bytes'],
    ['https://93.184.216.34/', 'not an address'],
    ['https://127.0.0.1/', 'not an address'],
    ['https://127.1/', 'not an address'],
    ['https://127.0.1/', 'not an address'],
    ['https://2130706433/', 'not an address'],
    ['https://0x7f000001/', 'not an address'],
    ['https://0x7f.0.0.1/', 'not an address'],
    ['https://0177.0.0.1/', 'not an address'],
    ['https://017700000001/', 'not an address'],
    ['https://127.0.0.1./', 'not an address'],
    ['https://%31%32%37.0.0.1/', 'not an address'],
    ['https://①②⑦.0.0.1/', 'https'],
    ['https://[::1]/', 'not an address'],
    ['https://[::ffff:127.0.0.1]/', 'not an address'],
    ['https://[64:ff9b::7f00:1]/', 'not an address'],
    ['https://[2002:7f00:1::]/', 'not an address'],
    ['https://[fe80::1%25eth0]/', 'https'],
    ['https://localhost/', 'public'],
    ['https://localhost./', 'public'],
    ['https://a.localhost/', 'public'],
    ['https://printer.local/', 'public'],
    ['https://db.internal/', 'public'],
    ['https://a.invalid/', 'public'],
    ['https://a.test/', 'public'],
    ['https://acme.example/', 'public'],
    ['https://abc.onion/', 'public'],
    ['https://1.0.0.127.in-addr.arpa/', 'public'],
    ['https://home.arpa/', 'public'],
    ['https://intranet/', 'two labels'],
    ['https://a_b.acme.com/', 'DNS name'],
    ['https://-a.acme.com/', 'DNS name'],
    ['https://a..acme.com/', 'DNS name'],
    ['https://api.agents.example.com/', 'this service'],
    ['https://API.agents.example.com:8443/', 'this service'],
    ['https://agents.example.org/', 'this service'],
    ['https://mail.agents.example.org/', 'this service'],
    ['http://127.0.0.1:9000/hook', 'https'],
  ])('may not be %j', (url, why) => {
    expect(endpointUrlFault(url, RULES)).toContain(why);
  });
});

describe('on a local run with loopback let through', () => {
  test.each(['http://127.0.0.1:9000/hook', 'http://localhost:9000/hook', 'https://localhost/hook', 'http://[::1]:80/'])(
    'may be %s',
    (url) => {
      expect(endpointUrlFault(url, LOCAL)).toBeNull();
    },
  );

  test.each([
    'http://127.0.0.2/',
    'http://10.0.0.1/',
    'http://hooks.acme.com/',
    'http://user@127.0.0.1/',
    'http://127.0.0.1/#a',
  ])('may still not be %s', (url) => {
    expect(endpointUrlFault(url, LOCAL)).not.toBeNull();
  });
});
