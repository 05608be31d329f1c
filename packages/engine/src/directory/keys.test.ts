import { beforeEach, expect, test } from 'vitest';
import type { Db } from '../sql.ts';
import { auditEntry, directory, identityRow, NOW, newId, newIdentity, rows, tenantRow } from './directory.fixture.ts';
import { insertIdentity } from './identities.ts';
import { addKey, findKey, type KeyRow, listKeys, revokeKey, rotateKey } from './keys.ts';
import { insertTenant, type TenantRow } from './tenants.ts';

let db: Db;
let acme: TenantRow;

beforeEach(async () => {
  db = await directory();
  acme = tenantRow('acme');
  await insertTenant(db, acme, auditEntry('tenant.create', acme.id));
});

function keyRow(changes: Partial<KeyRow> = {}): KeyRow {
  const id = newId('key', NOW);
  return {
    id,
    lookup: id,
    hash: 'first',
    prev_hash: null,
    prev_expires_at: null,
    name: 'key',
    level: 'tenant',
    tenant_id: acme.id,
    identity_id: null,
    mode: 'live',
    permissions_json: '[]',
    created_by_key_id: null,
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    created_at: NOW,
    ...changes,
  };
}

const add = (row: KeyRow, max = 100) => addKey(db, row, max, auditEntry('key.create', acme.id));
const logged = async (action: string) => (await rows(db, 'SELECT id FROM audit_log WHERE action = ?', action)).length;

test('a key beyond the most is neither added nor logged; one that has ended makes room', async () => {
  const [first, second, third] = [keyRow(), keyRow(), keyRow()];
  expect([await add(first, 2), await add(second, 2), await add(third, 2)]).toEqual([true, true, false]);
  expect(await findKey(db, first.id)).toEqual(first);
  expect(await findKey(db, third.id)).toBeUndefined();
  expect(await logged('key.create')).toBe(2);
  await revokeKey(db, first.id, NOW + 1, auditEntry('key.revoke', acme.id));
  expect(await add(third, 2)).toBe(true);
  const platform = keyRow({ level: 'platform', tenant_id: null });
  expect(await add(platform, 2)).toBe(true);
});

test('a key is revoked once', async () => {
  const row = keyRow();
  await add(row);
  for (const at of [NOW + 1, NOW + 2]) await revokeKey(db, row.id, at, auditEntry('key.revoke', acme.id, at));
  expect((await findKey(db, row.id))?.revoked_at).toBe(NOW + 1);
  expect(await logged('key.revoke')).toBe(1);
});

test('rotating keeps the secret before for a while, or not at all', async () => {
  const row = keyRow();
  await add(row);
  expect(await rotateKey(db, row.id, 'second', NOW + 5, auditEntry('key.rotate', acme.id))).toBe(true);
  expect(await findKey(db, row.id)).toEqual({ ...row, hash: 'second', prev_hash: 'first', prev_expires_at: NOW + 5 });
  await rotateKey(db, row.id, 'third', null, auditEntry('key.rotate', acme.id));
  expect(await findKey(db, row.id)).toEqual({ ...row, hash: 'third' });
});

test('a key that has been revoked gets no other secret', async () => {
  const row = keyRow();
  await add(row);
  await revokeKey(db, row.id, NOW + 1, auditEntry('key.revoke', acme.id));
  expect(await rotateKey(db, row.id, 'second', NOW + 5, auditEntry('key.rotate', acme.id))).toBe(false);
  expect(await findKey(db, row.id)).toEqual({ ...row, revoked_at: NOW + 1 });
  expect(await logged('key.rotate')).toBe(0);
});

test('a list keeps to its scope and leaves the keys of the system identity to the operator', async () => {
  const ann = identityRow(acme.id, 'ann');
  const system = identityRow(acme.id, 'system', { is_system: 1 });
  for (const identity of [ann, system]) await insertIdentity(db, newIdentity(identity));
  const own = keyRow();
  const annKey = keyRow({ level: 'identity', identity_id: ann.id, created_at: NOW + 1 });
  const systemKey = keyRow({ level: 'identity', identity_id: system.id, created_at: NOW + 2 });
  const platform = keyRow({ level: 'platform', tenant_id: null, created_at: NOW + 3 });
  for (const row of [own, annKey, systemKey, platform]) await add(row);
  const list = async (tenant: TenantRow['id'] | null, identity: (typeof ann)['id'] | null) =>
    (await listKeys(db, { tenant_id: tenant, identity_id: identity }, 10, null)).map(({ id }) => id);
  expect(await list(null, null)).toEqual([platform.id, systemKey.id, annKey.id, own.id]);
  expect(await list(acme.id, null)).toEqual([annKey.id, own.id]);
  expect(await list(acme.id, ann.id)).toEqual([annKey.id]);
  const after = { at: annKey.created_at, id: annKey.id };
  expect(await listKeys(db, { tenant_id: acme.id, identity_id: null }, 10, after)).toEqual([own]);
});
