import { env } from 'cloudflare:workers';
import { grants, KEY_LEVELS, type Permission } from '@pmail/contracts/permissions.ts';
import { SEND_ROUTES } from '@pmail/contracts/routes/sends.ts';
import { ROUTE_IDS, type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import type { TenantId } from '@pmail/core/ids.ts';
import { expect } from 'vitest';
import { config } from '../../src/env.ts';
import { countFailure } from '../../src/http/rate.ts';
import { newId } from '../../src/ports/random.ts';
import { ALL, makeKey, plantKey, send, sql } from '../support.ts';
import { naming } from './routes.ts';
import { type Provocation, sample, type World } from './world.ts';

/** Who may not come in: keys that are none, are over, lack something, or ask too often. */

export const KEYED = ROUTE_IDS.filter((id) => routeSpec(id).access.kind === 'key');

export const isMail = (id: RouteId): boolean => /^(messages|threads|events|me)\./.test(id);
const MAIL = KEYED.filter(isMail);

function accessOf(route: RouteId) {
  const { access } = routeSpec(route);
  if (access.kind !== 'key') throw new Error(`${route} needs no key`);
  return access;
}

const by = (key: string | null) => (world: World, route: RouteId) => send(key, route, sample(world, route));
const authorised = (value: string) => (world: World, route: RouteId) => {
  const { headers, ...rest } = sample(world, route);
  return send(null, route, { ...rest, headers: { ...headers, authorization: value } });
};

/** Keys of one kind, planted once. */
const planted = new Map<string, Promise<string>>();
function keyOf(kind: string, changes: Parameters<typeof plantKey>[0]): Promise<string> {
  const key = planted.get(kind) ?? plantKey(changes);
  planted.set(kind, key);
  return key;
}

const otherSecret = (key: string): string => key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');

const unauthenticated: Provocation[] = [
  { code: 'unauthenticated', when: 'there is no key', routes: KEYED, provoke: by(null) },
  { code: 'unauthenticated', when: 'the scheme is another', routes: MAIL, provoke: authorised('Basic cG1rOng=') },
  { code: 'unauthenticated', when: 'the key has not the form of one', routes: MAIL, provoke: by('pmk_live_nonsense') },
  {
    code: 'unauthenticated',
    when: 'nobody has the key',
    routes: MAIL,
    provoke: by(`pmk_live_${'0'.repeat(12)}_${'0'.repeat(52)}`),
  },
  {
    code: 'unauthenticated',
    when: 'the secret is wrong',
    routes: MAIL,
    provoke: (world, route) => send(otherSecret(world.key), route, sample(world, route)),
  },
  {
    code: 'unauthenticated',
    when: 'the key is of the other mode',
    routes: MAIL,
    provoke: async (world, route) => send(await keyOf('test', { mode: 'test' }), route, sample(world, route)),
  },
  {
    code: 'unauthenticated',
    when: 'the secret before a rotation is used after its time',
    routes: ['me.get'],
    provoke: async (world, route) => {
      const old = await plantKey();
      await sql(
        "UPDATE api_keys SET prev_hash = hash, prev_expires_at = 1, hash = '' WHERE lookup = ?",
        old.split('_')[2] ?? '',
      );
      return send(old, route, sample(world, route));
    },
  },
];

let leaving: TenantId | undefined;

const over: Provocation[] = [
  {
    code: 'key_expired',
    when: 'its time is over',
    routes: KEYED,
    provoke: async (world, route) =>
      send(await keyOf('expired', { expires_at: Date.now() }), route, sample(world, route)),
  },
  {
    code: 'key_revoked',
    when: 'it was revoked',
    routes: KEYED,
    provoke: async (world, route) =>
      send(await keyOf('revoked', { revoked_at: Date.now() }), route, sample(world, route)),
  },
  {
    code: 'key_revoked',
    when: 'it was revoked and its time is over',
    routes: ['me.get'],
    provoke: async (world, route) =>
      send(await plantKey({ revoked_at: 1, expires_at: 1 }), route, sample(world, route)),
  },
  {
    code: 'key_revoked',
    when: 'its tenant is being erased',
    routes: MAIL,
    provoke: async (world, route) => {
      leaving ??= newId('ten', Date.now());
      await sql(
        `INSERT OR IGNORE INTO tenants (id, slug, name, mode, status, address_suffix, suffix_fold, quota_do_id, created_at, updated_at)
         VALUES (?1, ?1, 'gone', 'live', 'erasing', ?1, ?1, ?1, 0, 0)`,
        leaving,
      );
      return send(await keyOf('leaving', { level: 'tenant', tenant_id: leaving }), route, sample(world, route));
    },
  },
];

/** Every permission but one, and but those that bring it along. */
function without(permission: Permission): Permission[] {
  return ALL.filter((name) => !grants([name], permission));
}

const denied: Provocation[] = [
  {
    code: 'permission_denied',
    when: 'the key has every permission but the one needed',
    routes: KEYED.filter((id) => accessOf(id).permissions.length > 0),
    provoke: async (world, route) => {
      const [needed] = accessOf(route).permissions;
      if (needed === undefined) throw new Error('no permission is needed');
      const response = await send(
        await keyOf(`without ${needed}`, { permissions_json: JSON.stringify(without(needed)) }),
        route,
        sample(world, route),
      );
      const { error } = await response.clone().json<{ error: { details: unknown } }>();
      expect(error.details).toEqual({ required: needed });
      return response;
    },
  },
  {
    code: 'scope_denied',
    when: 'the level is barred, whatever the permissions',
    routes: KEYED.filter((id) => accessOf(id).levels !== undefined),
    provoke: async (world, route) => {
      const level = KEY_LEVELS.find((name) => accessOf(route).levels?.includes(name) === false);
      const identity = level === 'identity' ? { identity_id: world.ann } : {};
      const key = await keyOf(`of ${level}`, { level: level ?? 'identity', tenant_id: world.tenant, ...identity });
      return send(key, route, sample(world, route));
    },
  },
];

/** Fills a bucket of the real limiter and sends a request; when the minute ended in between, once more. */
async function whenFull(fill: () => Promise<boolean>, request: () => Promise<Response>): Promise<Response> {
  for (let round = 0; ; round++) {
    while (await fill());
    const response = await request();
    if (response.status === 429 || round === 2) return response;
  }
}

const filling = (binding: RateLimit, key: string) => async (): Promise<boolean> => {
  if (!(await binding.limit({ key })).success) return false;
  const many = await Promise.all(Array.from({ length: 300 }, () => binding.limit({ key })));
  return many.every(({ success }) => success);
};

const bucket = (name: string): Pick<Provocation, 'also'> => ({
  also: ({ details, headers }) => {
    expect(details).toEqual({ bucket: name, retry_after: expect.any(Number) as number });
    const wait = Number(details?.['retry_after']);
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(60);
    expect(headers.get('retry-after')).toBe(String(wait));
    expect(headers.get('ratelimit-reset')).toBe(String(wait));
  },
});

const IP = { 'cf-connecting-ip': '192.0.2.7' };

let busy: { key: string; id: string } | undefined;

async function busyKey(): Promise<{ key: string; id: string }> {
  if (busy === undefined) {
    const id = newId('key', Date.now());
    busy = { id, key: await plantKey({ id }) };
  }
  return busy;
}

export const limited: Provocation[] = [
  {
    code: 'rate_limited',
    when: 'the key asked 600 times',
    routes: KEYED,
    provoke: async (world, route) => {
      const { key, id } = await busyKey();
      return whenFull(filling(env.RL_API, id), () => send(key, route, sample(world, route)));
    },
    ...bucket('key'),
  },
  {
    code: 'rate_limited',
    when: 'the tenant asked 1,800 times',
    routes: ['me.get'],
    provoke: async (world, route) => {
      const key = await makeKey(world.root, { level: 'tenant', tenant_id: world.other.tenant });
      return whenFull(filling(env.RL_TENANT, world.other.tenant), () => send(key, route));
    },
    ...bucket('tenant'),
  },
  {
    code: 'rate_limited',
    when: 'the identity sent 120 times, whoever asked',
    routes: Object.keys(SEND_ROUTES) as RouteId[],
    provoke: (world, route) =>
      whenFull(filling(env.RL_SEND, world.bob), () =>
        send(world.key, route, naming(world, route, { identity_id: world.bob, message_id: world.bobsMessage })),
      ),
    ...bucket('send'),
  },
  {
    code: 'rate_limited',
    when: 'one caller failed to prove itself 600 times',
    routes: ['me.get', 'links.get', 'hooks.ses'],
    provoke: (_world, route) =>
      whenFull(
        async () => (await countFailure(env, config(env), new Headers(IP), Date.now())).ok,
        () => send('pmk_live_nonsense', route, { params: { token: 'x' }, headers: IP }),
      ),
    ...bucket('key'),
  },
];

export const access: Provocation[] = [...unauthenticated, ...over, ...denied];
