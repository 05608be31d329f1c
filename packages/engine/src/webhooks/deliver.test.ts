import { signWebhook } from '@pmail/core/webhooks/signature.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { rows } from '../directory/directory.fixture.ts';
import { reachFault } from './deliver.ts';
import type { EndpointId } from './endpoints.ts';
import { Hooks, SECRET } from './webhooks.fixture.ts';

/** One attempt: what is sent, and why nothing is. */

let hooks: Hooks;
let endpoint: EndpointId;

beforeEach(async () => {
  hooks = await Hooks.create();
  endpoint = await hooks.endpoint({ url: 'https://hooks.acme.com/in?x=1' });
});

async function attempted(): Promise<{ status: string; error: string | null; http_status: number | null }> {
  await hooks.told(1);
  await hooks.run();
  const [{ status, error, http_status } = { status: '', error: '', http_status: null }] =
    await hooks.attempts(endpoint);
  return { status, error, http_status };
}

describe('an attempt', () => {
  test('posts the bytes of the event, signed now with every secret', async () => {
    const other = `whsec_${'B'.repeat(43)}=`;
    hooks.secrets = [SECRET, other];
    const [event = 'evt_'] = await hooks.told(1);
    hooks.now += 5_000;
    await hooks.run();
    const [post] = hooks.posts;
    const [row] = await rows(hooks.db, 'SELECT payload_json FROM event_index WHERE id = ?', event);
    expect(post?.url).toBe('https://hooks.acme.com/in?x=1');
    expect(post?.body).toBe(row?.['payload_json']);
    const bytes = new TextEncoder().encode(post?.body);
    expect(post?.headers).toEqual({
      ...(await signWebhook([SECRET, other], event, hooks.now, bytes)),
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^PylotaMail\/\d+\.\d+\.\d+$/) as string,
    });
    expect(post?.headers['webhook-timestamp']).toBe(String(Math.floor(hooks.now / 1_000)));
  });

  test('that is repeated keeps id and bytes and has a time of its own', async () => {
    hooks.answers.push(500, 'timeout', 503);
    await hooks.told(1);
    await hooks.run();
    for (const wait of [30_000, 120_000, 600_000]) {
      hooks.now += wait;
      await hooks.run();
    }
    expect(hooks.posts).toHaveLength(4);
    for (const of of ['webhook-id', 'content-type']) {
      expect(new Set(hooks.posts.map(({ headers }) => headers[of])).size).toBe(1);
    }
    expect(new Set(hooks.posts.map(({ body }) => body)).size).toBe(1);
    expect(hooks.posts.map(({ headers, at }) => Number(headers['webhook-timestamp']) - Math.floor(at / 1_000))).toEqual(
      [0, 0, 0, 0],
    );
    expect(new Set(hooks.posts.map(({ headers }) => headers['webhook-signature'])).size).toBe(4);
  });

  test.each([
    [204, 'succeeded', null],
    [302, 'failed', 'redirect'],
    [404, 'failed', 'status_4xx'],
    [410, 'dead', 'status_410'],
    [500, 'failed', 'status_5xx'],
  ])('that is answered with %i has %s', async (status, outcome, error) => {
    hooks.answers.push(status);
    expect(await attempted()).toEqual({ status: outcome, error, http_status: status });
  });

  test.each(['timeout', 'dns', 'tls', 'connect'] as const)('that ends in %s has failed (V10)', async (error) => {
    hooks.answers.push(error);
    expect(await attempted()).toEqual({ status: 'failed', error, http_status: null });
  });
});

describe('nothing is sent', () => {
  test.each<[string, string[] | Error, string]>([
    ['to a host with a private address', ['10.0.0.1'], 'ssrf_blocked'],
    ['to a host with one private address among public ones', ['93.184.215.14', '::ffff:127.0.0.1'], 'ssrf_blocked'],
    ['to a host whose IPv6 address is local', ['93.184.215.14', 'fe80::1'], 'ssrf_blocked'],
    ['to a host with what is no address', ['93.184.215.14', 'nonsense'], 'ssrf_blocked'],
    ['to a host without addresses', [], 'dns'],
    ['to a host that no resolver knows of', new Error('SERVFAIL'), 'dns'],
  ])('%s', async (_what, addresses, error) => {
    hooks.hosts.set('hooks.acme.com', addresses);
    expect(await attempted()).toEqual({ status: 'failed', error, http_status: null });
    expect(hooks.posts).toEqual([]);
  });

  test('to a host that has moved since the last attempt', async () => {
    hooks.answers.push(500);
    await hooks.told(1);
    await hooks.run();
    hooks.hosts.set('hooks.acme.com', ['169.254.169.254']);
    hooks.now += 30_000;
    await hooks.run();
    expect(hooks.posts).toHaveLength(1);
    expect((await hooks.attempts(endpoint)).map(({ error }) => error)).toEqual(['status_5xx', 'ssrf_blocked']);
  });

  test('to a URL that is not allowed any more', async () => {
    await hooks.set(endpoint, { url: 'https://x.agents.example/' });
    expect(await attempted()).toMatchObject({ status: 'failed', error: 'invalid_url' });
    expect(hooks.posts).toEqual([]);
  });

  test('without a secret to sign with', async () => {
    hooks.secrets = [];
    expect(await attempted()).toMatchObject({ status: 'failed', error: 'secret_unavailable' });
    expect(hooks.posts).toEqual([]);
  });

  test('of an event whose bytes are gone', async () => {
    hooks.unread = null;
    expect(await attempted()).toMatchObject({ status: 'dead', error: 'event_unavailable' });
    expect(hooks.posts).toEqual([]);
  });

  test('of an event that cannot be read just now, and nothing is written down either', async () => {
    hooks.unread = new Error('the mailbox is away');
    const [event = 'evt_'] = await hooks.told(1);
    await expect(hooks.run()).rejects.toThrow('away');
    expect(await hooks.attempts(endpoint)).toEqual([]);
    hooks.unread = undefined;
    hooks.now += hooks.world.waits.webhook_lease_ms;
    expect(await hooks.take(endpoint, event)).toMatchObject({ attempt: 1 });
  });
});

describe('a host', () => {
  const reach = (url: string, loopback = false) =>
    reachFault({ ...hooks.world, rules: { ...hooks.world.rules, allow_loopback: loopback } }, url);

  test('is asked for without its trailing dot', async () => {
    hooks.hosts.set('dot.acme.com', ['10.0.0.1']);
    expect(await reach('https://dot.acme.com./')).toBe('ssrf_blocked');
  });

  test('on this machine is one only where that is let through', async () => {
    expect(await reach('http://127.0.0.1:8080/')).toBe('invalid_url');
    expect(await reach('http://127.0.0.1:8080/', true)).toBeNull();
    expect(await reach('http://10.0.0.1/', true)).toBe('invalid_url');
    hooks.hosts.set('rebind.acme.com', ['127.0.0.1']);
    expect(await reach('https://rebind.acme.com/', true)).toBe('ssrf_blocked');
  });
});
