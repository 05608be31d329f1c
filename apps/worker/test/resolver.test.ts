import { LIMITS } from '@pmail/core/limits.ts';
import type { Packet } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ResolverFault, resolveHost } from '../src/ports/resolver.ts';
import { dnsAnswer, dribble, hang, hurry, Net, PUBLIC, RCODE, type Resolver } from './net.ts';

/** Looking up addresses by DNS-over-HTTPS, against resolvers that answer well, badly, or not at all. */

const FIRST = 'https://one.example/dns-query';
const SECOND = 'https://two.example/dns-query';
const HOST = 'hooks.acme.com';

let net: Net;

beforeEach(() => {
  net = new Net().install();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const resolve = (host = HOST, resolvers: string[] = [FIRST, SECOND]): Promise<string[]> => resolveHost(resolvers, host);
const askedOf = (resolver: string): string[] =>
  net.asked.filter((asked) => asked.resolver === resolver).map(({ host, type }) => `${host} ${type}`);

describe('a host', () => {
  test('is asked for by both types, as RFC 8484 says', async () => {
    net.zones.set(HOST, { A: [PUBLIC, '192.0.2.1'], AAAA: ['2606:2800:21f::1'] });
    expect(await resolve()).toEqual([PUBLIC, '192.0.2.1', '2606:2800:21f::1']);
    expect(askedOf(FIRST)).toEqual([`${HOST} A`, `${HOST} AAAA`]);
    expect(askedOf(SECOND)).toEqual([]);
    for (const { headers } of net.asked) expect(headers.get('accept')).toBe('application/dns-message');
  });

  test('may have addresses of one type, or none', async () => {
    net.zones.set('six.acme.com', { AAAA: ['2606:2800:21f::1'] });
    net.zones.set('none.acme.com', {});
    expect(await resolve('six.acme.com')).toEqual(['2606:2800:21f::1']);
    expect(await resolve('none.acme.com')).toEqual([]);
    expect(askedOf(SECOND)).toEqual([]);
  });

  test('that does not exist has none, and nobody else is asked', async () => {
    net.zones.set(HOST, { rcode: RCODE.nxdomain });
    expect(await resolve()).toEqual([]);
    expect(askedOf(SECOND)).toEqual([]);
  });

  test('has the addresses at the end of its aliases, and the aliases themselves are none', async () => {
    net.zones.set(HOST, { CNAME: 'a.cdn.example' });
    net.zones.set('a.cdn.example', { CNAME: 'b.cdn.example' });
    net.zones.set('b.cdn.example', { A: [PUBLIC], AAAA: ['2606:2800:21f::1'] });
    expect(await resolve()).toEqual([PUBLIC, '2606:2800:21f::1']);
    net.zones.set('b.cdn.example', {});
    expect(await resolve()).toEqual([]);
  });

  test('shows every address, so that one bad one among them is seen', async () => {
    net.zones.set(HOST, { A: [PUBLIC, '10.0.0.1'], AAAA: ['::ffff:10.0.0.2', 'fd00::1'] });
    const found = await resolve();
    expect(found).toHaveLength(4);
    expect(found).toEqual(expect.arrayContaining([PUBLIC, '10.0.0.1', 'fd00::1']));
  });

  test('is the same in capitals', async () => {
    net.zones.set('HOOKS.acme.com', { A: [PUBLIC] });
    expect(await resolve('HOOKS.acme.com')).toEqual([PUBLIC]);
  });
});

/** An answer to the question that was asked, changed. */
const changed =
  (change: (query: Packet) => Packet) =>
  (query: Packet): Response =>
    dnsAnswer({ type: 'response', questions: query.questions ?? [], answers: [], ...change(query) });

const garbage =
  (bytes: Uint8Array<ArrayBuffer> | string, status = 200) =>
  (): Response =>
    new Response(bytes, { status });

describe('the next resolver is asked when one', () => {
  test.each<[string, Resolver]>([
    ['fails inside', changed(() => ({ flags: RCODE.servfail }))],
    ['refuses', changed(() => ({ flags: RCODE.refused }))],
    ['answers 500', garbage('', 500)],
    ['answers 429', garbage('', 429)],
    ['answers 204', () => new Response(null, { status: 204 })],
    ['answers with a redirect', () => new Response(null, { status: 302, headers: { location: 'http://127.0.0.1/' } })],
    ['cannot be reached', () => Promise.reject(new Error('Network connection lost.'))],
    ['answers nothing', garbage('')],
    ['answers a web page', garbage('<!doctype html><title>Sign in</title>')],
    ['answers JSON', garbage('{"Status":0,"Answer":[{"type":1,"data":"93.184.215.14"}]}')],
    ['answers zeros', garbage(new Uint8Array(64))],
    ['answers ones', garbage(new Uint8Array(64).fill(255))],
    ['answers a header that promises more', garbage(Uint8Array.of(0, 0, 128, 0, 255, 255, 255, 255, 0, 0, 0, 0))],
    ['sends the question back', changed(() => ({ type: 'query' }))],
    ['answers another question', changed(() => ({ questions: [{ type: 'A', name: 'other.acme.com' }] }))],
    ['answers no question', changed(() => ({ questions: [] }))],
    ['had to cut its answer', changed(() => ({ flags: 1 << 9 }))],
    ['answers with megabytes', garbage(new Uint8Array(8 * 1024 * 1024))],
  ])('%s', async (_what, behaviour) => {
    net.resolvers.set(FIRST, behaviour);
    expect(await resolve()).toEqual([PUBLIC]);
    expect(askedOf(SECOND)).toEqual([`${HOST} A`, `${HOST} AAAA`]);
    net.resolvers.set(SECOND, behaviour);
    await expect(resolve()).rejects.toBeInstanceOf(ResolverFault);
    await expect(resolve(HOST, [FIRST])).rejects.toBeInstanceOf(ResolverFault);
  });

  test('answers one of the two types only', async () => {
    net.zones.set(HOST, { A: [PUBLIC], AAAA: ['::1'] });
    net.resolvers.set(FIRST, (query) =>
      query.questions?.[0]?.type === 'AAAA' ? new Response(null, { status: 503 }) : net.answer(query),
    );
    // Its word about IPv4 is not taken: the missing half may hold the address that matters.
    expect(await resolve()).toEqual([PUBLIC, '::1']);
    expect(askedOf(SECOND)).toHaveLength(2);
  });

  test.each([
    ['A', 'says nothing'],
    ['AAAA', 'says nothing'],
    ['A', 'stops in the middle'],
  ])('has not answered about %s in time, because it %s', async (type, how) => {
    hurry(LIMITS.resolver_deadline_ms);
    const slow: Resolver = (query, signal) => {
      if (query.questions?.[0]?.type !== type) return net.answer(query);
      return how === 'says nothing' ? hang(signal) : dribble(signal, new Uint8Array(20));
    };
    net.resolvers.set(FIRST, slow);
    expect(await resolve()).toEqual([PUBLIC]);
    net.resolvers.set(SECOND, slow);
    await expect(resolve()).rejects.toBeInstanceOf(ResolverFault);
  });
});
