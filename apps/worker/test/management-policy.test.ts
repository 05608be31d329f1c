import { DEFAULT_POLICY } from '@pmail/core/policy/document.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { addDomain, audited, call, deploy, makeKey, paths, refusal, send, sql, tenant } from './support.ts';

let root: string;
let acme: string;
let key: string;

beforeEach(async () => {
  root = await deploy();
  acme = (await tenant(root, 'acme')).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: acme });
});

const get = (by: string) => call(by, 'tenants.policy.get', { params: { tenant_id: acme } });
const set = (by: string, policy: object) =>
  call(by, 'tenants.policy.update', { params: { tenant_id: acme }, body: { policy } });
const refused = (by: string, policy: object) =>
  refusal(by, 'tenants.policy.update', { params: { tenant_id: acme }, body: { policy } });

const fieldOf = async (by: string, name: string): Promise<unknown> =>
  (await get(by)).fields.find(({ field }) => field === name);

const eventRows = () => sql("SELECT * FROM event_index WHERE type = 'tenant.policy_updated' ORDER BY id");

test('the document, and what each key may do with its fields', async () => {
  expect(await get(root)).toMatchObject({ tenant_id: acme, policy_version: 0, policy: DEFAULT_POLICY });
  expect(await fieldOf(root, 'max_recipients')).toEqual({
    field: 'max_recipients',
    class: 'lower',
    writable: true,
    ceiling: null,
    ceiling_source: null,
  });
  expect(await fieldOf(key, 'max_recipients')).toMatchObject({ ceiling: 10, ceiling_source: 'deployment' });
  expect(await fieldOf(key, 'domains.allow_create_zone')).toMatchObject({ class: 'platform', writable: false });
  await set(root, { max_recipients: 4 });
  expect(await fieldOf(key, 'max_recipients')).toMatchObject({ ceiling: 4, ceiling_source: 'platform' });
});

test('a change raises the version and is told and logged with it', async () => {
  const after = await set(key, { max_recipients: 5, ai_disclosure: { mode: 'header' } });
  expect(after).toMatchObject({
    policy_version: 1,
    policy: {
      ...DEFAULT_POLICY,
      max_recipients: 5,
      ai_disclosure: { ...DEFAULT_POLICY.ai_disclosure, mode: 'header' },
    },
  });
  expect(await get(key)).toEqual(after);
  const [row, ...more] = await eventRows();
  expect(more).toEqual([]);
  expect(row).toMatchObject({ tenant_id: acme, identity_id: null, sequence: null, owner_kind: 'platform' });
  expect(JSON.parse(String(row?.['payload_json']))).toMatchObject({
    id: row?.['id'],
    type: 'tenant.policy_updated',
    tenant_id: acme,
    identity_id: null,
    sequence: null,
    data: { fields: ['max_recipients', 'ai_disclosure.mode'], by: 'tenant', policy_version: 1 },
  });
  const [told] = (await call(key, 'events.list', { query: { include: 'data' } })).data;
  expect(told).toMatchObject({ id: row?.['id'], data: { by: 'tenant' } });
  await set(root, { max_recipients: 3 });
  expect((await eventRows()).map((entry) => JSON.parse(String(entry['payload_json'])) as object)[1]).toMatchObject({
    data: { fields: ['max_recipients'], by: 'platform', policy_version: 2 },
  });
  expect(await audited(acme)).toEqual(['tenant.create', 'tenant.policy_update', 'tenant.policy_update']);
});

test('a change that changes nothing leaves version, events and log alone', async () => {
  const after = await set(key, { max_recipients: 5 });
  expect(await set(key, { max_recipients: 5 })).toEqual(after);
  expect(await set(key, {})).toEqual(after);
  expect(await eventRows()).toHaveLength(1);
});

test('null goes back to the deployment, for a field or a group; lists replace', async () => {
  await set(root, { link_ttl_hours: 5, retention: { raw_days: 3, message_days: 9 } });
  await set(root, { domains: { cloudflare_zones: ['a.example', 'b.example'] } });
  const { policy } = await set(root, {
    link_ttl_hours: null,
    retention: null,
    domains: { cloudflare_zones: ['c.example'] },
  });
  expect(policy).toEqual({ ...DEFAULT_POLICY, domains: { allow_create_zone: false, cloudflare_zones: ['c.example'] } });
});

describe('a tenant key is refused', () => {
  test('above the deployment', async () => {
    expect(await refused(key, { identity_daily_send_cap: 501 })).toEqual({
      code: 'scope_denied',
      field: 'identity_daily_send_cap',
      reason: 'above_ceiling',
      ceiling: 500,
      ceiling_source: 'deployment',
    });
  });

  test('above what a platform key set, also by going back to the deployment', async () => {
    await set(root, { auto_reply: { allowed: false, max_automatic_exchanges: 1 } });
    const answer = { code: 'scope_denied', reason: 'above_ceiling', ceiling_source: 'platform' };
    expect(await refused(key, { auto_reply: { allowed: true } })).toEqual({
      ...answer,
      field: 'auto_reply.allowed',
      ceiling: false,
    });
    expect(await refused(key, { auto_reply: { max_automatic_exchanges: null } })).toEqual({
      ...answer,
      field: 'auto_reply.max_automatic_exchanges',
      ceiling: 1,
    });
  });

  test('on fields of the operator, and then the whole change', async () => {
    const answer = { code: 'scope_denied', field: 'domains.cloudflare_zones', reason: 'not_writable' };
    expect(await refused(key, { max_recipients: 2, domains: { cloudflare_zones: [] } })).toEqual(answer);
    expect(await get(key)).toMatchObject({ policy_version: 0, policy: DEFAULT_POLICY });
    expect(await eventRows()).toEqual([]);
  });

  test('for another tenant, and without the permission', async () => {
    const other = (await tenant(root, 'other')).id;
    const params = { tenant_id: other };
    expect(await refusal(key, 'tenants.policy.get', { params })).toEqual({ code: 'tenant_not_found' });
    expect(await refusal(key, 'tenants.policy.update', { params, body: { policy: {} } })).toEqual({
      code: 'tenant_not_found',
    });
    const weak = await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: ['identities:read'] });
    expect(await refused(weak, {})).toEqual({ code: 'permission_denied', required: 'policy:write' });
  });
});

test('invalid_request with the path of each field that is out of range or unknown', async () => {
  const answer = await refused(root, { max_recipients: 50, retention: { raw_days: 0 }, speed: 1 });
  expect(paths(answer).sort()).toEqual(['policy.max_recipients', 'policy.retention.raw_days', 'policy.speed']);
  const params = { tenant_id: acme };
  expect(paths(await refusal(root, 'tenants.policy.update', { params, body: { max_recipients: 1 } }))).toContain(
    'policy',
  );
  expect(paths(await refused(root, { domains: { cloudflare_zones: ['a.example', '-'] } }))).toEqual([
    'policy.domains.cloudflare_zones[1]',
  ]);
});

test('domain_in_use when a zone would go whose domains are still connected', async () => {
  await set(root, { domains: { cloudflare_zones: ['acme.example', 'spare.example'] } });
  const domain = await addDomain(acme, 'mail.acme.example', { kind: 'zone', method: 'cloudflare_zone' });
  const answer = { code: 'domain_in_use', reason: 'zone_has_domains', domain_ids: [domain] };
  const without = { domains: { cloudflare_zones: ['spare.example'] } };
  expect(await refused(root, without)).toEqual(answer);
  const params = { tenant_id: acme };
  expect(await refusal(root, 'tenants.update', { params, body: { policy: without } })).toEqual(answer);
  expect(await refused(root, { domains: null })).toEqual(answer);
  await set(root, { domains: { cloudflare_zones: ['acme.example'] } });
  await sql("UPDATE domains SET state = 'removed' WHERE id = ?", domain);
  await set(root, without);
});

test('writers at once each change the document of the one before, or are told to repeat', async () => {
  const answers = await Promise.all(
    [1, 2, 3, 4, 5, 6].map((hours) =>
      send(root, 'tenants.policy.update', {
        params: { tenant_id: acme },
        body: { policy: { link_ttl_hours: hours, ...(hours === 1 ? { max_recipients: 2 } : {}) } },
      }),
    ),
  );
  for (const { status } of answers) expect([200, 503]).toContain(status);
  const done = answers.filter(({ status }) => status === 200).length;
  expect(done).toBeGreaterThan(0);
  expect((await get(root)).policy_version).toBe(done);
  expect(await eventRows()).toHaveLength(done);
  expect(await audited(acme)).toHaveLength(1 + done);
});

test('PATCH of the tenant changes the policy in the same way', async () => {
  const params = { tenant_id: acme };
  const changed = await call(root, 'tenants.update', { params, body: { name: 'Acme', policy: { max_recipients: 2 } } });
  expect(changed).toMatchObject({ name: 'Acme', policy: { max_recipients: 2 } });
  expect((await get(root)).policy_version).toBe(1);
  expect(await eventRows()).toHaveLength(1);
  expect(await audited(acme)).toEqual(expect.arrayContaining(['tenant.update', 'tenant.policy_update']));
});
