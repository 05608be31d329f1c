import { beforeEach, describe, expect, test } from 'vitest';
import { type Db, statement } from '../sql.ts';
import { readAuditDetails } from './audit.ts';
import {
  auditEntry,
  directory,
  identityRow,
  NOW,
  newId,
  newIdentity,
  PLATFORM_DOMAIN,
  rows,
  tenantRow,
} from './directory.fixture.ts';
import {
  changeIdentity,
  findByAddress,
  findByClientId,
  findDomain,
  findIdentity,
  findPlatformDomain,
  type IdentityReach,
  type IdentityRow,
  insertIdentity,
  listAddresses,
  listIdentities,
} from './identities.ts';
import { insertTenant, type TenantRow } from './tenants.ts';
import { readUsageDays } from './usage.ts';

let db: Db;
let acme: TenantRow;
let other: TenantRow;

beforeEach(async () => {
  db = await directory();
  acme = tenantRow('acme', { policy_json: '{"max_recipients":3}' });
  other = tenantRow('other');
  for (const row of [acme, other]) await insertTenant(db, row, auditEntry('tenant.create', row.id));
});

function add(row: IdentityRow, address?: string): ReturnType<typeof insertIdentity> {
  return insertIdentity(db, newIdentity(row, address));
}

describe('adding', () => {
  test('keeps every column, and shows addresses and what the tenant gives', async () => {
    const row = identityRow(acme.id, 'ann', {
      purpose: 'support',
      client_id: 'c-1',
      client_fingerprint: 'f',
      owner_name: 'Ada',
      owner_email: 'ada@example.com',
      signature_text: 'Ann',
      signature_html: '<b>Ann</b>',
      send_policy_json: '{"daily_cap":5}',
      metadata_json: '{"a":"b"}',
    });
    const created = newIdentity(row);
    expect(await insertIdentity(db, created)).toBe('created');
    const addresses = created.addresses.map(({ hash: _hash, ...address }) => address);
    const found = await findIdentity(db, row.id);
    expect(found).toMatchObject({ ...row, tenant_policy_json: acme.policy_json, tenant_quota_do_id: 'quota' });
    expect(found?.addresses).toMatchObject(addresses);
    expect(await listAddresses(db, row.id)).toMatchObject(addresses);
    expect(await findByClientId(db, acme.id, 'c-1')).toEqual(found);
    expect(await findByClientId(db, other.id, 'c-1')).toBeUndefined();
    expect(await readAuditDetails(db, [created.audit.id, newId('aud', NOW)])).toEqual(
      new Map([[created.audit.id, created.audit.details]]),
    );
  });

  test.each([
    ['username_taken', { username: 'ann', username_fold: 'xyz' }, 'free@agents.example'],
    ['username_taken', { username: 'xyz', username_fold: 'ann' }, 'free@agents.example'],
    ['address_taken', { username: 'xyz', username_fold: 'xyz' }, 'ann@agents.example'],
    ['client_id_taken', { username: 'xyz', username_fold: 'xyz', client_id: 'c-1' }, 'free@agents.example'],
  ] as const)('answers %s and keeps nothing', async (answer, changes, address) => {
    await add(identityRow(acme.id, 'ann', { client_id: 'c-1' }));
    const row = identityRow(acme.id, changes.username, changes);
    expect(await add(row, address)).toBe(answer);
    expect(await findIdentity(db, row.id)).toBeUndefined();
    expect(await rows(db, "SELECT id FROM audit_log WHERE action = 'identity.create'")).toHaveLength(1);
  });

  test('a tombstone keeps an address from every tenant', async () => {
    await db.batch([
      statement(
        "INSERT INTO address_tombstones (address_hash, identity_id, reason) VALUES (?, ?, 'deleted')",
        'hash of ann@agents.example',
        newId('idn', NOW),
      ),
    ]);
    for (const { id } of [acme, other]) expect(await add(identityRow(id, 'ann'))).toBe('address_taken');
    expect(await rows(db, 'SELECT * FROM identities')).toEqual([]);
  });

  test.each(['suspended', 'erasing', 'erased'] as const)('a tenant that is %s gets none', async (status) => {
    await db.batch([statement('UPDATE tenants SET status = ? WHERE id = ?', status, acme.id)]);
    expect(await add(identityRow(acme.id, 'ann'))).toBe('tenant_closed');
  });

  test('a name is free in another tenant, and again when its identity is gone', async () => {
    const row = identityRow(acme.id, 'ann');
    await add(row);
    expect(await add(identityRow(other.id, 'ann'), 'ann.other@agents.example')).toBe('created');
    await db.batch([statement("UPDATE identities SET status = 'deleted' WHERE id = ?", row.id)]);
    expect(await add(identityRow(acme.id, 'ann'), 'ann.2@agents.example')).toBe('created');
  });

  test('other faults are thrown', async () => {
    const row = identityRow(acme.id, 'ann', { status: 'none' as 'active' });
    await expect(add(row)).rejects.toThrow('CHECK');
  });
});

describe('finding by address', () => {
  const ANY: IdentityReach = { tenant_id: null, identity_id: null };

  test.each([
    ['active', 'active', true],
    ['retiring', 'paused', true],
    ['pending', 'active', false],
    ['retired', 'active', false],
    ['active', 'deleting', false],
  ])('%s address of an identity that is %s: %s', async (address, status, found) => {
    const row = identityRow(acme.id, 'ann');
    await add(row);
    await db.batch([
      statement('UPDATE addresses SET status = ?', address),
      statement('UPDATE identities SET status = ?', status),
    ]);
    expect((await findByAddress(db, 'ann@agents.example', ANY))?.id).toBe(found ? row.id : undefined);
  });

  test('within a reach shows what an asker of its own would be shown, and asks the same whatever there is', async () => {
    const [ann, bob] = [identityRow(acme.id, 'ann'), identityRow(acme.id, 'bob')];
    const system = identityRow(acme.id, 'system', { is_system: 1 });
    for (const row of [ann, bob, system]) await add(row);
    const asked: string[][] = [];
    const watched: Db = {
      batch: (statements) => {
        asked.push(statements.map(({ sql }) => sql));
        return db.batch(statements);
      },
    };
    const find = async (local: string, reach: IdentityReach) =>
      (await findByAddress(watched, `${local}@agents.example`, reach))?.id;
    const ofTenant = { tenant_id: acme.id, identity_id: null };
    expect(await find('ann', ofTenant)).toBe(ann.id);
    expect(await find('ann', { ...ofTenant, identity_id: ann.id })).toBe(ann.id);
    expect(await find('bob', { ...ofTenant, identity_id: ann.id })).toBeUndefined();
    expect(await find('ann', { tenant_id: other.id, identity_id: null })).toBeUndefined();
    expect(await find('nobody', ofTenant)).toBeUndefined();
    expect(await find('system', ofTenant)).toBeUndefined();
    expect(await find('system', ANY)).toBe(system.id);
    expect(asked).toHaveLength(7);
    expect(new Set(asked.map(String)).size).toBe(1);
    expect(await findByAddress(db, 'ann@agents.example', ANY)).toEqual(await findIdentity(db, ann.id));
  });
});

test('the list is newest first, in pages, by each filter, without the system identity', async () => {
  const row = (username: string, changes: Partial<IdentityRow> = {}) => identityRow(acme.id, username, changes);
  const all = [
    row('one'),
    row('two', { created_at: NOW + 1, purpose: 'p' }),
    row('three', { created_at: NOW + 1, client_id: 'c' }),
    row('four', { created_at: NOW + 2, status: 'paused', pause_reason: 'manual' }),
    row('system', { created_at: NOW + 3, is_system: 1 }),
    identityRow(other.id, 'five', { created_at: NOW + 4 }),
  ];
  for (const identity of all) await add(identity);
  const names = async (...args: Parameters<typeof listIdentities> extends [Db, ...infer R] ? R : never) =>
    (await listIdentities(db, ...args)).map(({ username }) => username);
  expect(await names({}, 10, null)).toEqual(['five', 'four', 'three', 'two', 'one']);
  expect(await names({ tenant_id: acme.id }, 2, null)).toEqual(['four', 'three']);
  const third = all[2];
  expect(await names({ tenant_id: acme.id }, 2, { at: NOW + 1, id: third?.id ?? '' })).toEqual(['two', 'one']);
  expect(await names({ status: 'paused' }, 10, null)).toEqual(['four']);
  expect(await names({ purpose: 'p' }, 10, null)).toEqual(['two']);
  expect(await names({ client_id: 'c' }, 10, null)).toEqual(['three']);
  expect(await names({ identity_id: all[0]?.id }, 10, null)).toEqual(['one']);
  expect(await names({ identity_id: all[4]?.id }, 10, null)).toEqual([]);
});

describe('changing', () => {
  test('writes columns and audit entries together', async () => {
    const seen = identityRow(acme.id, 'ann');
    await add(seen);
    const next: IdentityRow = {
      ...seen,
      display_name: 'Ann',
      purpose: 'p',
      owner_name: 'Ada',
      owner_email: 'ada@example.com',
      signature_text: 't',
      signature_html: '<p>h</p>',
      status: 'paused',
      pause_reason: 'manual',
      send_policy_json: '{"daily_cap":1}',
      metadata_json: '{"k":"v"}',
      updated_at: NOW + 1,
    };
    expect(await changeIdentity(db, seen, next, [auditEntry('identity.pause', acme.id)])).toBe(true);
    expect(await findIdentity(db, seen.id)).toMatchObject(next);
    expect(await rows(db, "SELECT id FROM audit_log WHERE action = 'identity.pause'")).toHaveLength(1);
  });

  test.each([
    ['status', { status: 'paused' as const }],
    ['pause reason', { pause_reason: 'manual' as const }],
    ['time of the last change', { updated_at: NOW + 7 }],
  ])('writes nothing when the %s is not what was seen', async (_name, difference) => {
    const row = identityRow(acme.id, 'ann');
    await add(row);
    const next = { ...row, display_name: 'Changed', updated_at: NOW + 9 };
    const audits = [auditEntry('identity.update', acme.id)];
    expect(await changeIdentity(db, { ...row, ...difference }, next, audits)).toBe(false);
    expect(await findIdentity(db, row.id)).toMatchObject(row);
    expect(await rows(db, "SELECT id FROM audit_log WHERE action = 'identity.update'")).toEqual([]);
  });
});

test('a tenant can name its own domains and that of the platform', async () => {
  const id = newId('dom', NOW);
  await db.batch([
    statement(
      `INSERT INTO domains (id, tenant_id, name, kind, method, is_apex, routing_mode, inbound, transport, reply_token,
         receiving, sending, state, state_changed_at, created_at, updated_at)
       VALUES (?, ?, 'acme.example', 'external', 'send_only', 1, 'forward', 'forward', 'ses', 'none', 1, 1, 'healthy',
         0, 0, 0)`,
      id,
      acme.id,
    ),
  ]);
  expect(await findDomain(db, acme.id, id)).toMatchObject({ name: 'acme.example', inbound: 'forward' });
  expect(await findDomain(db, other.id, id)).toBeUndefined();
  expect(await findDomain(db, acme.id, PLATFORM_DOMAIN)).toMatchObject({ tenant_id: null });
  expect(await findPlatformDomain(db)).toMatchObject({ id: PLATFORM_DOMAIN, name: 'agents.example' });
});

test('usage is read by tenant and day, both ends included', async () => {
  const usage = (tenant: string, day: string, value: number) =>
    statement("INSERT INTO usage_daily (tenant_id, day, metric, value) VALUES (?, ?, 'sends', ?)", tenant, day, value);
  await db.batch([
    usage(acme.id, '2026-11-01', 1),
    usage(acme.id, '2026-11-02', 2),
    usage(acme.id, '2026-11-03', 3),
    usage(acme.id, '2026-11-04', 4),
    usage(other.id, '2026-11-02', 9),
  ]);
  expect(await readUsageDays(db, acme.id, '2026-11-02', '2026-11-03')).toEqual([
    { day: '2026-11-02', metric: 'sends', value: 2 },
    { day: '2026-11-03', metric: 'sends', value: 3 },
  ]);
});
