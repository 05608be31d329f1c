import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import { statement } from '@pmail/engine/sql.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import worker from '../src/index.ts';
import { quotaStub } from '../src/objects/remote.ts';
import { call, db, deploy, identity, makeKey, paths, refusal, send, sql, tenant } from './support.ts';

/** What the management routes have in common, and the usage of a tenant. */

const ROUTES: RouteId[] = [
  'tenants.create',
  'tenants.list',
  'tenants.get',
  'tenants.update',
  'tenants.policy.get',
  'tenants.policy.update',
  'tenants.billing.get',
  'tenants.billing.update',
  'keys.create',
  'keys.list',
  'keys.get',
  'keys.revoke',
  'keys.rotate',
  'identities.create',
  'identities.list',
  'identities.listOfTenant',
  'identities.lookup',
  'identities.get',
  'identities.update',
  'identities.addresses.list',
  'usage.get',
  'usage.daily',
  'platform.keys.rotate',
];

let root: string;
let acme: string;
let key: string;

beforeEach(async () => {
  root = await deploy();
  acme = (await tenant(root, 'acme')).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: acme });
});

afterEach(() => {
  vi.restoreAllMocks();
});

const anything = (route: RouteId) => ({
  params: {
    tenant_id: 'ten_01JABCDEFGHJKMNPQRSTVWXYZ0',
    identity_id: 'idn_01JABCDEFGHJKMNPQRSTVWXYZ0',
    key_id: 'key_01JABCDEFGHJKMNPQRSTVWXYZ0',
    purpose: 'link',
  },
  ...(routeSpec(route).body === null ? {} : { body: {} }),
});

test.each(ROUTES)('%s without a key, with a wrong, expired or revoked one', async (route) => {
  const input = anything(route);
  expect(await refusal(null, route, input)).toEqual({ code: 'unauthenticated' });
  expect(await refusal('pmk_live_nonsense', route, input)).toEqual({ code: 'unauthenticated' });
  const wrong = `${root.slice(0, -1)}${root.endsWith('0') ? '1' : '0'}`;
  expect(await refusal(wrong, route, input)).toEqual({ code: 'unauthenticated' });
  await sql('UPDATE api_keys SET expires_at = 1');
  expect(await refusal(root, route, input)).toEqual({ code: 'key_expired' });
  await sql('UPDATE api_keys SET revoked_at = 1');
  expect(await refusal(root, route, input)).toEqual({ code: 'key_revoked' });
});

test.each(ROUTES.filter((route) => routeSpec(route).body !== null && !routeSpec(route).path.includes('{')))(
  '%s refuses what is no JSON object, too large, or has a bad Idempotency-Key',
  async (route) => {
    const { method, path } = routeSpec(route);
    const post = async (body: string, headers: Record<string, string> = {}) => {
      const { exports } = await import('cloudflare:workers');
      const response = await exports.default.fetch(`https://api.example${path}`, {
        method,
        body,
        headers: { authorization: `Bearer ${root}`, 'content-type': 'application/json', ...headers },
      });
      return (await response.json<{ error: { code: string } }>()).error.code;
    };
    expect(await post('{')).toBe('invalid_request');
    expect(await post('[]')).toBe('invalid_request');
    expect(await post('{}', { 'content-type': 'text/plain' })).toBe('invalid_request');
    expect(await post('{}', { 'idempotency-key': '' })).toBe('invalid_idempotency_key');
    expect(await post(' '.repeat(7 * 1024 * 1024 + 1))).toBe('payload_too_large');
  },
);

test.each([null, 'Bearer', 'Basic eDp5', 'Bearer pmk_live_nonsense', 'pmk_live_nonsense'])(
  'no body is read under the Authorization %s, and the address is counted',
  async (authorization) => {
    const counted = vi.spyOn(env.RL_API, 'limit');
    const pulled = vi.fn((controller: ReadableStreamDefaultController) => controller.error(new Error('was read')));
    const request = new Request('https://api.example/v1/tenants', {
      method: 'POST',
      headers: {
        ...(authorization === null ? {} : { authorization }),
        'content-type': 'application/json',
        'cf-connecting-ip': '192.0.2.7',
      },
      body: new ReadableStream({ pull: pulled }, { highWaterMark: 0 }),
    });
    const response = await worker.fetch(request as never, env, createExecutionContext());
    expect((await response.json<{ error: { code: string } }>()).error.code).toBe('unauthenticated');
    expect(pulled).not.toHaveBeenCalled();
    expect(counted.mock.calls.map(([{ key }]) => key)).toEqual([expect.stringMatching(/^anon:/)]);
  },
);

test('rate_limited when a key asks too often', async () => {
  vi.spyOn(env.RL_API, 'limit').mockResolvedValue({ success: false });
  const answer = await refusal(root, 'tenants.list');
  expect(answer).toMatchObject({ code: 'rate_limited', bucket: 'key' });
});

describe('usage.get', () => {
  test('what the tenant may use and has used', async () => {
    const now = new Date();
    const month = (offset: number) =>
      new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1)).toISOString();
    const usage = await call(key, 'usage.get');
    expect(usage).toMatchObject({ billing: 'disabled', period_start: month(0), period_end: month(1) });
    expect(usage.features).toEqual(
      ['inboxes', 'sends', 'custom_domains', 'storage_gb'].map((feature) => ({
        feature,
        granted: null,
        used: 0,
        held: 0,
        remaining: null,
        unlimited: true,
        resets_at: feature === 'sends' ? month(1) : null,
      })),
    );
    const [row] = await sql('SELECT quota_do_id FROM tenants WHERE id = ?', acme);
    const quota = quotaStub(env, String(row?.['quota_do_id']));
    const owner = { v: 1, tenant_id: acme as `ten_${string}`, identity_id: null, request_id: 'test' } as const;
    await quota.takeBilling(owner, { mode: 'metered', granted: { sends: 100 }, as_of: Date.now() + 1_000 });
    const metered = await call(key, 'usage.get');
    expect(metered.billing).toBe('metered');
    expect(metered.features[1]).toMatchObject({ granted: 100, remaining: 100, unlimited: false });
  });

  test('of the own tenant without a permission, of any with a platform key', async () => {
    const other = (await tenant(root, 'other')).id;
    const { id } = await identity(root, acme, 'ann');
    const own = await makeKey(root, { level: 'identity', identity_id: id, permissions: ['messages:read'] });
    for (const route of ['usage.get', 'usage.daily'] as const) {
      const of = (tenant_id: string) => ({ query: { tenant_id } });
      for (const by of [key, own]) {
        await call(by, route);
        await call(by, route, of(acme));
        expect(await refusal(by, route, of(other))).toEqual({ code: 'tenant_not_found' });
      }
      await call(root, route, of(other));
      const missing = await refusal(root, route);
      expect(missing.code).toBe('invalid_request');
      expect(paths(missing)).toEqual(['tenant_id']);
      for (const tenant_id of ['ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense']) {
        expect(await refusal(root, route, of(tenant_id))).toEqual({ code: 'tenant_not_found' });
      }
    }
    const { secret = '' } = await call(root, 'keys.create', {
      body: { name: 'k', level: 'platform', permissions: ['tenants:manage'] },
    });
    expect(await refusal(secret, 'usage.get')).toEqual({ code: 'permission_denied', required: 'usage:read' });
  });
});

describe('usage.daily', () => {
  const zero = { inbound: 0, outbound: 0, sends: 0, storage_bytes: 0 };
  const daily = async (query = {}) => (await call(key, 'usage.daily', { query })).data;

  test('has an entry for each day, with zeros where nothing was', async () => {
    const usage = (day: string, metric: string, value: number) =>
      statement(
        'INSERT INTO usage_daily (tenant_id, day, metric, value) VALUES (?, ?, ?, ?)',
        acme,
        day,
        metric,
        value,
      );
    await db.batch([
      usage('2026-02-27', 'inbound', 1),
      usage('2026-02-28', 'inbound', 2),
      usage('2026-02-28', 'outbound', 3),
      usage('2026-03-02', 'sends', 4),
      usage('2026-03-02', 'storage_bytes', 5),
      usage('2026-03-03', 'sends', 6),
    ]);
    expect(await daily({ from: '2026-02-28', to: '2026-03-02' })).toEqual([
      { ...zero, day: '2026-02-28', inbound: 2, outbound: 3 },
      { ...zero, day: '2026-03-01' },
      { ...zero, day: '2026-03-02', sends: 4, storage_bytes: 5 },
    ]);
  });

  test('goes up to today and over thirty days unless said otherwise', async () => {
    const today = new Date().toISOString().slice(0, 10);
    const preset = await daily();
    expect(preset).toHaveLength(30);
    expect(preset.at(-1)).toEqual({ ...zero, day: today });
    const until = await daily({ to: '2026-01-30' });
    expect([until[0]?.day, until.at(-1)?.day]).toEqual(['2026-01-01', '2026-01-30']);
    expect(await daily({ from: today })).toHaveLength(1);
    expect(await daily({ from: '2026-01-01', to: '2026-04-02' })).toHaveLength(92);
  });

  test.each([
    [{ from: '2026-01-01', to: '2026-04-03' }, 'from'],
    [{ from: '2026-01-02', to: '2026-01-01' }, 'from'],
    [{ from: '2020-01-01' }, 'from'],
    [{ from: '2999-01-01' }, 'from'],
    [{ from: '2026-02-30' }, 'from'],
    [{ to: 'today' }, 'to'],
    [{ day: '2026-01-01' }, 'day'],
  ])('invalid_request for %j', async (query, path) => {
    expect(paths(await refusal(key, 'usage.daily', { query }))).toEqual([path]);
  });

  test('shows what the roll-up wrote', async () => {
    const { id } = await identity(root, acme, 'ann');
    const [row] = await sql('SELECT quota_do_id FROM tenants WHERE id = ?', acme);
    const quota = quotaStub(env, String(row?.['quota_do_id']));
    const owner = { v: 1, tenant_id: acme as `ten_${string}`, identity_id: null, request_id: 'test' } as const;
    const usage = { op: 'usage', ref: 'msg_1', identity_id: id, metric: 'inbound', amount: 1 } as const;
    await quota.apply(owner, usage);
    const { rollUpUsage } = await import('../src/crons/usage.ts');
    await rollUpUsage(env, Date.now());
    expect((await daily()).at(-1)).toMatchObject({ inbound: 1 });
  });
});

test('answers of the management routes are not to be stored', async () => {
  const response = await send(key, 'keys.list');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('ratelimit-limit')).toBe('600');
  expect(response.headers.get('request-id')).toMatch(/^req_/);
});
