import { EVENT_API_VERSION, type EventEnvelope } from '@pmail/core/events/types.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Db, statement } from '../sql.ts';
import { auditEntry, directory, identityRow, NOW, newId, newIdentity, rows, tenantRow } from './directory.fixture.ts';
import { insertIdentity } from './identities.ts';
import { listZoneDomains, policyColumns, readStoredPolicy } from './policy.ts';
import {
  billingOf,
  changeTenant,
  findTenant,
  grantedColumn,
  insertTenant,
  listTenants,
  pausedWithTenant,
  resumedWithTenant,
  type TenantRow,
  takenName,
} from './tenants.ts';

let db: Db;
let acme: TenantRow;

beforeEach(async () => {
  db = await directory();
  acme = tenantRow('acme', { owner_name: 'Ada', owner_email: 'ada@example.com', policy_json: '{"max_recipients":3}' });
  await insertTenant(db, acme, auditEntry('tenant.create', acme.id));
});

function policyEvent(tenant: TenantRow): EventEnvelope {
  return {
    id: newId('evt', NOW),
    type: 'tenant.policy_updated',
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(NOW),
    tenant_id: tenant.id,
    identity_id: null,
    sequence: null,
    data: { fields: ['max_recipients'] },
  };
}

const actions = async (): Promise<unknown[]> =>
  (await rows(db, 'SELECT action FROM audit_log ORDER BY id')).map(({ action }) => action);

describe('adding', () => {
  test('keeps every column, and the audit entry with it', async () => {
    expect(await findTenant(db, acme.id)).toEqual(acme);
    expect(await actions()).toEqual(['tenant.create']);
  });

  test.each([
    ['slug_taken', tenantRow('acme', { address_suffix: '.other', suffix_fold: '.other' })],
    ['suffix_taken', tenantRow('other', { address_suffix: '.acme', suffix_fold: '.xyz' })],
    ['suffix_taken', tenantRow('other', { address_suffix: '.xyz', suffix_fold: '.acme' })],
    ['slug_taken', tenantRow('acme')],
  ] as const)('says %s, looked up or raced for', async (answer, other) => {
    expect(await takenName(db, other)).toBe(answer);
    expect(await insertTenant(db, other, auditEntry('tenant.create', other.id))).toBe(answer);
    expect(await findTenant(db, other.id)).toBeUndefined();
    expect(await actions()).toEqual(['tenant.create']);
  });

  test('an empty fold conflicts with nothing, an empty suffix with another', async () => {
    const bare = tenantRow('default', { address_suffix: '', suffix_fold: '' });
    expect(await takenName(db, bare)).toBeNull();
    expect(await insertTenant(db, bare, auditEntry('tenant.create', bare.id))).toBe('created');
    const second = tenantRow('second', { address_suffix: '', suffix_fold: '' });
    expect(await takenName(db, second)).toBe('suffix_taken');
  });

  test('other faults are thrown', async () => {
    const broken = tenantRow('broken', { mode: 'neither' as 'live' });
    await expect(insertTenant(db, broken, auditEntry('tenant.create', broken.id))).rejects.toThrow('CHECK');
  });
});

test('the list is newest first, in pages, by status and mode', async () => {
  const others = ['b1', 'b2', 'b3'].map((slug, index) =>
    tenantRow(slug, { created_at: NOW + (index < 2 ? 1 : 2), mode: index === 0 ? 'test' : 'live' }),
  );
  for (const row of others) await insertTenant(db, row, auditEntry('tenant.create', row.id));
  const slugs = async (...args: Parameters<typeof listTenants> extends [Db, ...infer R] ? R : never) =>
    (await listTenants(db, ...args)).map(({ slug }) => slug);
  expect(await slugs({}, 10, null)).toEqual(['b3', 'b2', 'b1', 'acme']);
  expect(await slugs({}, 2, null)).toEqual(['b3', 'b2']);
  const [, second] = await listTenants(db, {}, 2, null);
  expect(await slugs({}, 2, { at: second?.created_at ?? 0, id: second?.id ?? '' })).toEqual(['b1', 'acme']);
  expect(await slugs({ mode: 'test' }, 10, null)).toEqual(['b1']);
  expect(await slugs({ status: 'suspended' }, 10, null)).toEqual([]);
});

describe('changing', () => {
  test('writes columns, audit entries and the event of the policy together', async () => {
    const next: TenantRow = {
      ...acme,
      name: 'Acme Ltd',
      timezone: 'Europe/Berlin',
      owner_name: null,
      owner_email: null,
      ...policyColumns({ patch: { max_recipients: 2 }, ceilings: { max_recipients: 5 } }),
      policy_version: 1,
      updated_at: NOW + 1,
    };
    const event = policyEvent(acme);
    const audits = [auditEntry('tenant.update', acme.id), auditEntry('tenant.policy_update', acme.id)];
    expect(await changeTenant(db, { seen: acme, next, audits, event })).toEqual([]);
    expect(await findTenant(db, acme.id)).toEqual(next);
    expect(readStoredPolicy(next)).toEqual({ patch: { max_recipients: 2 }, ceilings: { max_recipients: 5 } });
    expect(await actions()).toEqual(['tenant.create', 'tenant.update', 'tenant.policy_update']);
    const [indexed] = await rows(db, 'SELECT * FROM event_index');
    expect(indexed).toMatchObject({ id: event.id, tenant_id: acme.id, owner_kind: 'platform', fanned_out_at: null });
    expect(JSON.parse(String(indexed?.['payload_json']))).toEqual(event);
  });

  test.each([
    ['the version', { policy_version: 7 }],
    ['the status', { status: 'suspended' as const }],
    ['the time of the last change', { updated_at: NOW - 1 }],
  ])('writes nothing when %s is not what was seen', async (_name, difference) => {
    await insertIdentity(db, newIdentity(identityRow(acme.id, 'ann')));
    const seen = { ...acme, ...difference };
    const next: TenantRow = { ...seen, name: 'Changed', status: 'suspended', updated_at: NOW + 1 };
    if (seen.status === 'suspended') next.status = 'active';
    const before = await actions();
    const change = { seen, next, audits: [auditEntry('tenant.update', acme.id)], event: policyEvent(acme) };
    expect(await changeTenant(db, change)).toBeUndefined();
    expect(await findTenant(db, acme.id)).toEqual(acme);
    expect(await actions()).toEqual(before);
    expect(await rows(db, 'SELECT * FROM event_index')).toEqual([]);
    expect(await pausedWithTenant(db, acme.id)).toEqual([]);
  });
});

test('suspending pauses the active identities, resuming ends exactly those pauses', async () => {
  const states = [
    identityRow(acme.id, 'active'),
    identityRow(acme.id, 'manual', { status: 'paused', pause_reason: 'manual' }),
    identityRow(acme.id, 'abuse', { status: 'paused', pause_reason: 'abuse_threshold' }),
    identityRow(acme.id, 'deleting', { status: 'deleting' }),
  ];
  for (const row of states) await insertIdentity(db, newIdentity(row));
  const other = tenantRow('other');
  await insertTenant(db, other, auditEntry('tenant.create', other.id));
  await insertIdentity(db, newIdentity(identityRow(other.id, 'stranger')));
  const statuses = () => rows(db, 'SELECT username, status, pause_reason FROM identities ORDER BY id');
  const before = await statuses();

  const suspended: TenantRow = {
    ...acme,
    status: 'suspended',
    suspended_at: NOW + 5,
    suspended_by: 'platform',
    updated_at: NOW + 5,
  };
  const owner = { id: states[0]?.id, tenant_id: acme.id, mailbox_do_id: 'mailbox-active' };
  expect(await changeTenant(db, { seen: acme, next: suspended, audits: [], event: null })).toEqual([owner]);
  expect(await pausedWithTenant(db, acme.id)).toEqual([owner]);
  expect(await statuses()).toEqual([
    { username: 'active', status: 'paused', pause_reason: 'tenant_suspended' },
    ...before.slice(1),
  ]);

  const resumed: TenantRow = {
    ...suspended,
    status: 'active',
    suspended_at: null,
    suspended_by: null,
    updated_at: NOW + 9,
  };
  expect(await changeTenant(db, { seen: suspended, next: resumed, audits: [], event: null })).toEqual([owner]);
  expect(await statuses()).toEqual(before);
  expect(await resumedWithTenant(db, acme.id, NOW + 9)).toEqual([owner]);
  expect(await resumedWithTenant(db, acme.id, NOW + 8)).toEqual([]);
});

test('domains that need a zone of the account are those of the zone method that are not gone', async () => {
  const domain = (name: string, method: string, state: string, tenant: string) =>
    statement(
      `INSERT INTO domains (id, tenant_id, name, kind, method, is_apex, routing_mode, inbound, transport, reply_token,
         receiving, sending, state, state_changed_at, created_at, updated_at)
       VALUES (?, ?, ?, 'zone', ?, 1, 'catch_all', 'routing', 'cloudflare', 'subaddress', 1, 1, ?, 0, 0, 0)`,
      newId('dom', NOW),
      tenant,
      name,
      method,
      state,
    );
  await db.batch([
    domain('a.example', 'cloudflare_zone', 'healthy', acme.id),
    domain('b.example', 'cloudflare_zone', 'removed', acme.id),
    domain('c.example', 'nameservers', 'healthy', acme.id),
    domain('d.example', 'cloudflare_zone', 'removing', acme.id),
  ]);
  expect((await listZoneDomains(db, acme.id)).map(({ name }) => name)).toEqual(['a.example', 'd.example']);
});

describe('billing', () => {
  test('is a column of amounts in a fixed order, without those that have no bound', () => {
    expect(grantedColumn({})).toBe('{}');
    expect(grantedColumn({ storage_gb: 5, sends: 0, inboxes: null, custom_domains: undefined })).toBe(
      '{"sends":0,"storage_gb":5}',
    );
  });

  test('goes with a change of the tenant, and says as of when', async () => {
    const next: TenantRow = {
      ...acme,
      billing_mode: 'metered',
      granted_json: grantedColumn({ sends: 7 }),
      updated_at: NOW + 5,
    };
    await changeTenant(db, { seen: acme, next, audits: [auditEntry('tenant.billing_update', acme.id)], event: null });
    const row = await findTenant(db, acme.id);
    expect(row).toEqual(next);
    expect(billingOf(next)).toEqual({ mode: 'metered', granted: { sends: 7 }, as_of: NOW + 5 });
  });
});
