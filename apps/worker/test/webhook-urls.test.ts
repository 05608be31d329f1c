import { LIMITS } from '@pmail/core/limits.ts';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { hang, hurry, Net, PUBLIC, RCODE, type Zone } from './net.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, makeKey, paths, refusal, sql, tenant } from './support.ts';

/** URLs that no endpoint may have, by their form and by where their host is. */

keepStorage();

let key: string;
let id: string;
let webhook: string;
let net: Net;

beforeAll(async () => {
  vi.restoreAllMocks();
  new Net().install();
  const root = await deploy();
  id = (await tenant(root, 'acme')).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: id });
  webhook = (await create('https://hooks.acme.com/in')).id;
});
beforeEach(() => {
  vi.restoreAllMocks();
  net = new Net().install();
});

const body = (url: string) => ({ url, events: ['message.sent'] });
const create = (url: string) =>
  call(key, 'webhooks.createOfTenant', { params: { tenant_id: id }, body: body(url), status: 201 });

/** Refused when it is made and when it is changed, with what is wrong with it, and stored nowhere. */
async function refused(url: string): Promise<string> {
  const before = await sql('SELECT * FROM webhook_endpoints ORDER BY id');
  const answers = [
    await refusal(key, 'webhooks.createOfTenant', { params: { tenant_id: id }, body: body(url) }),
    await refusal(key, 'webhooks.update', { params: { webhook_id: webhook }, body: { url } }),
  ];
  for (const answer of answers) expect([answer.code, paths(answer)]).toEqual(['invalid_request', ['url']]);
  expect(await sql('SELECT * FROM webhook_endpoints ORDER BY id')).toEqual(before);
  expect(net.posted).toEqual([]);
  const [first, second] = answers.map(({ errors }) => (errors as { message: string }[])[0]?.message);
  expect(first).toBe(second);
  return first ?? '';
}

describe('by its form', () => {
  test.each([
    ['', /absolute/],
    ['hooks.acme.com', /absolute/],
    ['//hooks.acme.com/', /absolute/],
    ['http://hooks.acme.com/', /https/],
    ['ftp://hooks.acme.com/', /https/],
    ['javascript:alert(1)', /https/],
    ['https://user:pass@hooks.acme.com/', /user name/],
    ['https://hooks.acme.com/#x', /fragment/],
    ['https://hooks.acme.com:22/', /port/],
    ['https://127.0.0.1/', /address/],
    ['https://2130706433/', /address/],
    ['https://0x7f.1/', /address/],
    ['https://[::1]/', /address/],
    ['https://[::ffff:10.0.0.1]/', /address/],
    ['https://localhost/', /public/],
    ['https://hooks.internal/', /public/],
    ['https://hooks/', /two labels/],
    ['https://api.example/', /public/],
    ['https://x.agents.example/', /public/],
    ['https://hooks.acme.com\\@127.0.0.1/', /ASCII/],
    ['https://hooks.acme.com/\r\nHost: x', /ASCII/],
    ['https://hööks.acme.com/', /ASCII/],
    [`https://hooks.acme.com/${'x'.repeat(2_048)}`, /2048 bytes/],
  ])('%j', async (url, message) => {
    expect(await refused(url)).toMatch(message);
    // What is refused by its form is not even looked up.
    expect(net.asked).toEqual([]);
  });
});

describe('by where its host is', () => {
  test.each<[string, Zone]>([
    ['a private address', { A: ['10.1.2.3'] }],
    ['this machine', { A: ['127.0.0.1'] }],
    ['the metadata of a cloud', { A: ['169.254.169.254'] }],
    ['a local IPv6 address', { AAAA: ['fd00::1'] }],
    ['IPv4 inside IPv6', { AAAA: ['::ffff:192.168.0.1'] }],
    ['an IPv4-compatible address', { AAAA: ['::7f00:1'] }],
    ['one bad address among good ones', { A: [PUBLIC, PUBLIC, '192.168.1.1'] }],
    ['a good IPv4 and a bad IPv6 address', { A: [PUBLIC], AAAA: ['fe80::1'] }],
    ['an alias of a bad one', { CNAME: 'inside.acme.com' }],
  ])('%s', async (_what, zone) => {
    net.zones.set('hooks.acme.com', zone);
    net.zones.set('inside.acme.com', { A: ['10.0.0.1'] });
    expect(await refused('https://hooks.acme.com/other')).toBe('has a host with an address that must not be reached');
  });

  test.each<[string, Zone]>([
    ['no address', {}],
    ['no existence', { rcode: RCODE.nxdomain }],
    ['a resolver that fails', { rcode: RCODE.servfail }],
    ['an alias of nothing', { CNAME: 'nothing.acme.com' }],
  ])('%s', async (_what, zone) => {
    net.zones.set('hooks.acme.com', zone);
    net.zones.set('nothing.acme.com', {});
    expect(await refused('https://hooks.acme.com/other')).toBe('has a host whose address was not found');
  });

  test.each<[string, (signal: AbortSignal) => Promise<Response>]>([
    ['do not answer', hang],
    ['are broken', async () => new Response('no', { status: 500 })],
    ['speak no DNS', async () => new Response('<html>')],
  ])('is not known while the resolvers %s, which is no fault of the URL', async (_what, answer) => {
    hurry(LIMITS.resolver_deadline_ms);
    const before = await sql('SELECT * FROM webhook_endpoints ORDER BY id');
    for (const resolver of ['https://cloudflare-dns.com/dns-query', 'https://dns.google/dns-query']) {
      net.resolvers.set(resolver, (_query, signal) => answer(signal));
    }
    const url = 'https://hooks.acme.com/other';
    const answers = [
      await refusal(key, 'webhooks.createOfTenant', { params: { tenant_id: id }, body: body(url) }),
      await refusal(key, 'webhooks.update', { params: { webhook_id: webhook }, body: { url } }),
    ];
    for (const told of answers) {
      expect(told).toMatchObject({ code: 'unavailable', step: 'resolver' });
    }
    expect(new Set(net.asked.map(({ resolver }) => resolver)).size).toBe(2);
    expect(await sql('SELECT * FROM webhook_endpoints ORDER BY id')).toEqual(before);
    expect(net.posted).toEqual([]);
  });
});

test('anything else is taken as it was given, in IDN and with any port from 1024 on', async () => {
  net.zones.set('hooks.acme.com', { A: [PUBLIC], AAAA: ['2606:2800:21f::1'] });
  for (const url of [
    'https://hooks.acme.com',
    'https://HOOKS.acme.com/In?x=%20&y=1',
    'https://hooks.acme.com:443/',
    'https://hooks.acme.com:8443/',
    'https://xn--hks-snaa.acme.com/',
    'https://hooks.acme.com./',
  ]) {
    expect(await create(url)).toMatchObject({ url, enabled: true });
  }
  expect(new Set(net.asked.map(({ host, type }) => `${host} ${type}`))).toEqual(
    new Set(['hooks.acme.com A', 'hooks.acme.com AAAA', 'xn--hks-snaa.acme.com A', 'xn--hks-snaa.acme.com AAAA']),
  );
});

test('a test of an endpoint looks again, and posts to no address that has become private', async () => {
  net.zones.set('hooks.acme.com', { A: ['192.168.0.1'] });
  expect(await call(key, 'webhooks.test', { params: { webhook_id: webhook } })).toMatchObject({
    status: 'failed',
    error: 'ssrf_blocked',
    http_status: null,
  });
  net.zones.set('hooks.acme.com', { rcode: RCODE.servfail });
  expect(await call(key, 'webhooks.test', { params: { webhook_id: webhook } })).toMatchObject({ error: 'dns' });
  expect(net.posted).toEqual([]);
});
