import { env } from 'cloudflare:workers';
import type { Permission } from '@pmail/contracts/permissions.ts';
import { statement } from '@pmail/engine/sql.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  allOf,
  audited,
  call,
  db,
  deploy,
  identity,
  makeKey,
  paths,
  platformKey,
  refusal,
  send,
  sql,
  statuses,
  tenant,
} from './support.ts';

let root: string;
let acme: string;
let other: string;
/** Keys of acme. */
let tenantKey: string;
let identityKey: string;
let ann: string;

beforeEach(async () => {
  root = await deploy();
  acme = (await tenant(root, 'acme', { mode: 'test' })).id;
  other = (await tenant(root, 'other')).id;
  ann = (await identity(root, acme, 'ann')).id;
  tenantKey = await makeKey(root, { level: 'tenant', tenant_id: acme });
  identityKey = await makeKey(root, { level: 'identity', identity_id: ann });
});

afterEach(() => {
  vi.restoreAllMocks();
});

const me = (key: string) => call(key, 'me.get');
const idOf = async (key: string): Promise<string> => (await me(key)).key_id;
const create = (key: string, body: object) => call(key, 'keys.create', { body, status: 201 });
const refused = (key: string, body: object) => refusal(key, 'keys.create', { body: { name: 'k', ...body } });
const READ: Permission[] = ['identities:read'];

describe('keys.create', () => {
  test('a platform key makes keys of every level', async () => {
    const platform = await create(root, {
      name: 'ops',
      level: 'platform',
      permissions: ['platform:ops', 'keys:manage'],
    });
    expect(platform).toMatchObject({ name: 'ops', mode: 'live', tenant_id: null, identity_id: null });
    expect(await me(platform.secret ?? '')).toMatchObject({
      level: 'platform',
      permissions: ['platform:ops', 'keys:manage'],
    });
    expect(await me(tenantKey)).toMatchObject({ level: 'tenant', mode: 'test', tenant_id: acme, identity_id: null });
    expect(await me(identityKey)).toMatchObject({ level: 'identity', mode: 'test', tenant_id: acme, identity_id: ann });
    expect(tenantKey).toMatch(/^pmk_test_[0-9a-hjkmnp-tv-z]{12}_[0-9a-hjkmnp-tv-z]{52}$/);
    const live = await create(root, { name: 'k', level: 'tenant', tenant_id: other, permissions: READ });
    expect(live).toMatchObject({ mode: 'live', secret: expect.stringMatching(/^pmk_live_/) as string });
  });

  test('shows the secret once and stores a keyed hash of it', async () => {
    const expires_at = '2100-01-01T01:00:00+01:00';
    const made = await create(tenantKey, { name: 'k', level: 'tenant', permissions: [...READ, ...READ], expires_at });
    expect(made).toMatchObject({
      permissions: READ,
      expires_at: '2100-01-01T00:00:00.000Z',
      created_by_key_id: await idOf(tenantKey),
      revoked_at: null,
      last_used_at: null,
    });
    const { secret, ...shown } = made;
    expect(await call(tenantKey, 'keys.get', { params: { key_id: made.id } })).toEqual(shown);
    const [row] = await sql('SELECT * FROM api_keys WHERE id = ?', made.id);
    expect(row?.['hash']).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(row)).not.toContain(secret);
    expect(await audited(made.id)).toEqual(['key.create']);
  });

  test('a tenant key makes tenant and identity keys of its own tenant', async () => {
    expect(await create(tenantKey, { name: 'k', level: 'tenant', permissions: READ })).toMatchObject({
      tenant_id: acme,
    });
    const made = await create(tenantKey, { name: 'k', level: 'identity', identity_id: ann, permissions: READ });
    expect(made).toMatchObject({ level: 'identity', tenant_id: acme, identity_id: ann });
  });

  test('an identity key makes keys of the same identity', async () => {
    const made = await create(identityKey, { name: 'k', level: 'identity', permissions: READ });
    expect(made).toMatchObject({ tenant_id: acme, identity_id: ann });
  });

  test('key_scope_exceeded for a wider level or a permission the key lacks', async () => {
    const wider = { code: 'key_scope_exceeded' };
    expect(await refused(tenantKey, { level: 'platform', permissions: READ })).toEqual(wider);
    expect(await refused(identityKey, { level: 'tenant', permissions: READ })).toEqual(wider);
    const weak = await makeKey(root, {
      level: 'tenant',
      tenant_id: acme,
      permissions: ['keys:manage', 'webhooks:manage'],
    });
    expect(await refused(weak, { level: 'tenant', permissions: READ })).toEqual(wider);
    const included = { name: 'k', level: 'tenant', permissions: ['webhooks:read'] };
    expect(await create(weak, included)).toMatchObject({ permissions: ['webhooks:read'] });
    const operator = await platformKey(['keys:manage']);
    expect(await refused(operator, { level: 'tenant', tenant_id: acme, permissions: READ })).toEqual(wider);
  });

  test.each([
    ['tenant', 'tenants:manage'],
    ['tenant', 'platform:ops'],
    ['identity', 'audit:read'],
  ])('a %s key cannot hold %s', async (level, permission) => {
    const answer = await refused(root, { level, tenant_id: acme, permissions: ['identities:read', permission] });
    expect(answer).toMatchObject({ code: 'invalid_request', reason: 'permission_not_allowed_for_level' });
    expect(paths(answer)).toEqual(['permissions[1]']);
  });

  test('invalid_request for what is missing, out of place or past', async () => {
    expect(paths(await refused(root, { level: 'tenant', permissions: READ }))).toEqual(['tenant_id']);
    expect(paths(await refused(root, { level: 'identity', tenant_id: acme, permissions: READ }))).toEqual([
      'identity_id',
    ]);
    expect(paths(await refused(root, { level: 'platform', tenant_id: acme, permissions: READ }))).toEqual([
      'tenant_id',
    ]);
    expect(paths(await refused(root, { level: 'tenant', tenant_id: acme, permissions: [] }))).toEqual(['permissions']);
    const expires_at = '2020-01-01T00:00:00Z';
    expect(paths(await refused(root, { level: 'tenant', tenant_id: acme, permissions: READ, expires_at }))).toEqual([
      'expires_at',
    ]);
  });

  test('what lies out of reach looks missing', async () => {
    const bob = (await identity(root, acme, 'bob')).id;
    const stranger = (await identity(root, other, 'stranger')).id;
    const noTenant = { code: 'tenant_not_found' };
    const noIdentity = { code: 'identity_not_found' };
    const nobody = 'idn_01JABCDEFGHJKMNPQRSTVWXYZ0';
    for (const tenant_id of [other, 'ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense']) {
      expect(await refused(tenantKey, { level: 'tenant', tenant_id, permissions: READ })).toEqual(noTenant);
    }
    for (const identity_id of [stranger, nobody, 'nonsense']) {
      expect(await refused(tenantKey, { level: 'identity', identity_id, permissions: READ })).toEqual(noIdentity);
    }
    expect(await refused(identityKey, { level: 'identity', identity_id: bob, permissions: READ })).toEqual(noIdentity);
    const mixed = { level: 'identity', tenant_id: other, identity_id: ann, permissions: READ };
    expect(await refused(root, mixed)).toEqual(noIdentity);
    await sql("UPDATE identities SET status = 'deleting' WHERE id = ?", bob);
    expect(await refused(root, { level: 'identity', identity_id: bob, permissions: READ })).toEqual(noIdentity);
    await sql("UPDATE tenants SET status = 'erasing' WHERE id = ?", other);
    expect(await refused(root, { level: 'tenant', tenant_id: other, permissions: READ })).toEqual(noTenant);
  });

  test('key_limit_reached at a hundred keys of the tenant that still work', async () => {
    const [{ n } = { n: 0 }] = await sql('SELECT COUNT(*) AS n FROM api_keys WHERE tenant_id = ?', acme);
    await db.batch(
      Array.from({ length: 99 - Number(n) }, (_, index) =>
        statement(
          `INSERT INTO api_keys (id, lookup, hash, name, level, tenant_id, mode, permissions_json, created_at)
           VALUES (?1, ?1, '', 'filler', 'tenant', ?2, 'test', '[]', 0)`,
          `filler-${index}`,
          acme,
        ),
      ),
    );
    const body = { name: 'k', level: 'tenant', permissions: READ };
    const answers = await Promise.all([1, 2, 3].map(() => send(tenantKey, 'keys.create', { body })));
    expect(statuses(answers)).toEqual([201, 422, 422]);
    expect(await refused(tenantKey, body)).toEqual({ code: 'key_limit_reached', limit: 100 });
    await sql("UPDATE api_keys SET revoked_at = 1 WHERE id = 'filler-50'");
    await create(tenantKey, body);
    await sql("UPDATE api_keys SET expires_at = 1 WHERE id = 'filler-51'");
    await create(tenantKey, body);
    await create(root, { ...body, tenant_id: other });
    await create(root, { ...body, level: 'platform' });
  });
});

describe('reach', () => {
  test('lists go newest first through pages, each key within its own reach', async () => {
    await makeKey(root, { level: 'tenant', tenant_id: other });
    const names = async (key: string, query = {}) =>
      (await call(key, 'keys.list', { query })).data.map(({ level, tenant_id }) => `${level} ${tenant_id === acme}`);
    expect(await names(root)).toEqual(['tenant false', 'identity true', 'tenant true', 'platform false']);
    expect(await names(tenantKey)).toEqual(['identity true', 'tenant true']);
    expect(await names(identityKey)).toEqual(['identity true']);
    const { data, next_cursor } = await call(tenantKey, 'keys.list', { query: { limit: '1' } });
    const rest = await call(tenantKey, 'keys.list', { query: { limit: '1', cursor: next_cursor ?? '' } });
    expect([...data, ...rest.data].map(({ level }) => level)).toEqual(['identity', 'tenant']);
    expect(rest.next_cursor).toBeNull();
    const stolen = await refusal(root, 'keys.list', { query: { limit: '1', cursor: next_cursor ?? '' } });
    expect(paths(stolen)).toEqual(['cursor']);
  });

  test.each(['keys.get', 'keys.revoke', 'keys.rotate'] as const)('%s', async (route) => {
    const bob = (await identity(root, acme, 'bob')).id;
    const bobKey = await idOf(await makeKey(root, { level: 'identity', identity_id: bob }));
    const strange = await idOf(await makeKey(root, { level: 'tenant', tenant_id: other }));
    const weak = await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: ['keys:manage'] });
    const attempt = (key: string, key_id: string) => refusal(key, route, { params: { key_id } });
    const missing = { code: 'key_not_found' };
    const wider = { code: 'key_scope_exceeded' };
    expect(await attempt(tenantKey, strange)).toEqual(missing);
    expect(await attempt(tenantKey, await idOf(root))).toEqual(missing);
    expect(await attempt(tenantKey, 'key_01JABCDEFGHJKMNPQRSTVWXYZ0')).toEqual(missing);
    expect(await attempt(tenantKey, 'nonsense')).toEqual(missing);
    expect(await attempt(identityKey, bobKey)).toEqual(missing);
    expect(await attempt(identityKey, strange)).toEqual(missing);
    expect(await attempt(identityKey, await idOf(tenantKey))).toEqual(missing);
    expect(await attempt(identityKey, await idOf(root))).toEqual(missing);
    const narrow = [
      [weak, tenantKey],
      [await platformKey(['keys:manage']), tenantKey],
      [await makeKey(root, { level: 'identity', identity_id: ann, permissions: ['keys:manage'] }), identityKey],
    ] as const;
    // What is only read gives nobody more than he has.
    for (const [by, of] of narrow) {
      const key_id = await idOf(of);
      if (route === 'keys.get') expect((await call(by, route, { params: { key_id } })).id).toBe(key_id);
      else expect(await attempt(by, key_id)).toEqual(wider);
    }
    const without = await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: READ });
    expect(await attempt(without, bobKey)).toEqual({ code: 'permission_denied', required: 'keys:manage' });
    expect(await call(tenantKey, route, { params: { key_id: bobKey } })).toSatisfy(() => true);
  });

  test('whoever asks for a key is shown what the list shows, and nothing else', async () => {
    const bob = (await identity(root, acme, 'bob')).id;
    await makeKey(root, { level: 'identity', identity_id: bob });
    await makeKey(root, { level: 'tenant', tenant_id: other });
    await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: READ });
    const weak = await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: ['keys:manage'] });
    const all = (await call(root, 'keys.list')).data;
    expect(all).toHaveLength(7);
    for (const by of [root, tenantKey, identityKey, weak, await platformKey(['keys:manage'])]) {
      const listed = (await call(by, 'keys.list')).data.map(({ id }) => id);
      for (const { id: key_id } of all) {
        if (listed.includes(key_id)) expect((await call(by, 'keys.get', { params: { key_id } })).id).toBe(key_id);
        else expect(await refusal(by, 'keys.get', { params: { key_id } })).toEqual({ code: 'key_not_found' });
      }
    }
  });

  test('keys of the system identity belong to nobody but the operator', async () => {
    const system = (await identity(root, acme, 'sys')).id;
    const key_id = await idOf(await makeKey(root, { level: 'identity', identity_id: system, permissions: READ }));
    await sql('UPDATE identities SET is_system = 1 WHERE id = ?', system);
    expect(await refusal(tenantKey, 'keys.get', { params: { key_id } })).toEqual({ code: 'key_not_found' });
    expect((await call(tenantKey, 'keys.list')).data.map(({ id }) => id)).not.toContain(key_id);
    expect((await call(root, 'keys.list')).data.map(({ id }) => id)).toContain(key_id);
    const body = { level: 'identity', identity_id: system, permissions: READ };
    expect(await refused(tenantKey, body)).toEqual({ code: 'identity_not_found' });
  });
});

test('keys.revoke ends a key at once; a repeat answers the same and is not logged again', async () => {
  const key = await makeKey(tenantKey, { level: 'tenant' });
  const params = { key_id: await idOf(key) };
  expect(await call(tenantKey, 'keys.revoke', { params, status: 204 })).toBeNull();
  expect(await refusal(key, 'tenants.get', { params: { tenant_id: acme } })).toEqual({ code: 'key_revoked' });
  const { revoked_at } = await call(tenantKey, 'keys.get', { params });
  expect(revoked_at).not.toBeNull();
  await call(tenantKey, 'keys.revoke', { params, status: 204 });
  expect((await call(tenantKey, 'keys.get', { params })).revoked_at).toBe(revoked_at);
  expect(await audited(params.key_id)).toEqual(['key.create', 'key.revoke']);
  expect(await refusal(tenantKey, 'keys.rotate', { params })).toEqual({ code: 'key_not_found' });
});

describe('keys.rotate', () => {
  test('gives a new secret under the same id; the old one works for a while', async () => {
    const old = await makeKey(tenantKey, { level: 'tenant' });
    const params = { key_id: await idOf(old) };
    const rotated = await call(tenantKey, 'keys.rotate', { params, body: { overlap_hours: 1 } });
    const fresh = rotated.secret ?? '';
    expect(rotated.id).toBe(params.key_id);
    expect(fresh).not.toBe(old);
    expect(fresh.split('_')[2]).toBe(old.split('_')[2]);
    expect([await idOf(old), await idOf(fresh)]).toEqual([params.key_id, params.key_id]);
    expect(await audited(params.key_id)).toEqual(['key.create', 'key.rotate']);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_001);
    expect((await send(old, 'me.get')).status).toBe(401);
    expect(await idOf(fresh)).toBe(params.key_id);
  });

  test('the overlap is a day unless said otherwise, and none with 0', async () => {
    const old = await makeKey(tenantKey, { level: 'tenant' });
    const params = { key_id: await idOf(old) };
    const { secret = '' } = await call(tenantKey, 'keys.rotate', { params });
    const [row] = await sql('SELECT prev_expires_at FROM api_keys WHERE id = ?', params.key_id);
    expect(Number(row?.['prev_expires_at']) / 3_600_000).toBeCloseTo(Date.now() / 3_600_000 + 24, 1);
    const last = await call(tenantKey, 'keys.rotate', { params, body: { overlap_hours: 0 } });
    for (const key of [old, secret]) expect((await send(key, 'me.get')).status).toBe(401);
    expect(await idOf(last.secret ?? '')).toBe(params.key_id);
  });

  test('a key rotates itself', async () => {
    const params = { key_id: await idOf(identityKey) };
    const { secret = '' } = await call(identityKey, 'keys.rotate', { params, body: { overlap_hours: 0 } });
    expect(await me(secret)).toMatchObject({ identity_id: ann, permissions: allOf('identity') });
  });

  test('invalid_request beyond a week', async () => {
    const params = { key_id: await idOf(identityKey) };
    expect(paths(await refusal(identityKey, 'keys.rotate', { params, body: { overlap_hours: 169 } }))).toEqual([
      'overlap_hours',
    ]);
  });

  test('key_not_found for one that is revoked while its new secret is made', async () => {
    const params = { key_id: await idOf(identityKey) };
    const batch = env.DB.batch.bind(env.DB);
    vi.spyOn(env.DB, 'batch').mockImplementation(async (statements) => {
      const results = await batch(statements);
      // Nothing but the change itself comes after what is read of the key.
      if (results.some(({ results: rows }) => rows.some((row) => (row as { id?: string }).id === params.key_id))) {
        await batch([env.DB.prepare('UPDATE api_keys SET revoked_at = 1 WHERE id = ?').bind(params.key_id)]);
      }
      return results;
    });
    expect(await refusal(tenantKey, 'keys.rotate', { params })).toEqual({ code: 'key_not_found' });
    vi.restoreAllMocks();
    expect(await audited(params.key_id)).toEqual(['key.create']);
  });

  test('key_not_found for one that has expired', async () => {
    const params = { key_id: await idOf(identityKey) };
    await sql('UPDATE api_keys SET expires_at = 1 WHERE id = ?', params.key_id);
    expect(await refusal(tenantKey, 'keys.rotate', { params })).toEqual({ code: 'key_not_found' });
    expect((await send(identityKey, 'me.get')).status).toBe(401);
  });
});
