import { env } from 'cloudflare:workers';
import { DEFAULT_POLICY } from '@pmail/core/policy/document.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { IdentityMailbox } from '../src/index.ts';
import {
  audited,
  call,
  deploy,
  eventsOf,
  eventTypes,
  identity,
  makeKey,
  paths,
  refusal,
  send,
  sql,
  statuses,
  tenant,
} from './support.ts';

let root: string;

beforeEach(async () => {
  root = await deploy();
});

afterEach(() => {
  vi.restoreAllMocks();
});

const update = (id: string, body: object) => call(root, 'tenants.update', { params: { tenant_id: id }, body });

describe('tenants.create', () => {
  test('fills in what is not said', async () => {
    const acme = await tenant(root, 'acme');
    expect(acme).toMatchObject({
      slug: 'acme',
      mode: 'live',
      status: 'active',
      suspended_by: null,
      address_suffix: '.acme',
      timezone: 'UTC',
      policy: DEFAULT_POLICY,
      owner: null,
    });
    expect(await call(root, 'tenants.get', { params: { tenant_id: acme.id } })).toEqual(acme);
    expect(await audited(acme.id)).toEqual(['tenant.create']);
  });

  test('takes what is said', async () => {
    const said = {
      mode: 'test',
      timezone: 'Europe/Berlin',
      address_suffix: '.short',
      policy: {
        max_recipients: 40,
        ai_disclosure: { mode: 'footer' },
        domains: { cloudflare_zones: ['Zone.Example'] },
      },
      owner: { name: 'Ada', email: 'Ada@Example.com' },
    };
    const made = await tenant(root, 'acme', { ...said, billing: { mode: 'metered' } });
    expect(made).toMatchObject({
      ...said,
      owner: { name: 'Ada', email: 'ada@example.com' },
      policy: {
        ...DEFAULT_POLICY,
        max_recipients: 40,
        ai_disclosure: { ...DEFAULT_POLICY.ai_disclosure, mode: 'footer' },
        domains: { allow_create_zone: false, cloudflare_zones: ['zone.example'] },
      },
    });
    const usage = await call(root, 'usage.get', { query: { tenant_id: made.id } });
    expect(usage.billing).toBe('metered');
    const [row] = await sql('SELECT billing_mode, policy_ceilings_json FROM tenants WHERE id = ?', made.id);
    expect(row).toEqual({ billing_mode: 'metered', policy_ceilings_json: '{"max_recipients":40}' });
  });

  test('slug_taken, suffix_taken, and a suffix that looks like another', async () => {
    await tenant(root, 'acme-10');
    const create = (body: object) => refusal(root, 'tenants.create', { body: { name: 'n', mode: 'live', ...body } });
    expect(await create({ slug: 'acme-10', address_suffix: '.free' })).toEqual({ code: 'slug_taken' });
    expect(await create({ slug: 'other', address_suffix: '.acme-10' })).toEqual({ code: 'suffix_taken' });
    expect(await create({ slug: 'acme-lo' })).toEqual({ code: 'suffix_taken' });
    expect(await sql('SELECT slug FROM tenants')).toHaveLength(1);
  });

  test('of two requests at once that want the same name one gets it', async () => {
    const body = { slug: 'acme', name: 'n', mode: 'live' };
    const answers = await Promise.all(Array.from({ length: 4 }, () => send(root, 'tenants.create', { body })));
    expect(statuses(answers)).toEqual([201, 409, 409, 409]);
    for (const answer of answers.filter(({ status }) => status === 409)) {
      expect(await answer.json()).toMatchObject({ error: { code: 'slug_taken' } });
    }
    expect(await sql('SELECT id FROM audit_log')).toHaveLength(1);
  });

  test('only the default tenant has no suffix', async () => {
    const answer = await refusal(root, 'tenants.create', {
      body: { slug: 'acme', name: 'n', mode: 'live', address_suffix: '' },
    });
    expect(answer.code).toBe('invalid_request');
    expect(paths(answer)).toEqual(['address_suffix']);
    expect(await tenant(root, 'default', { address_suffix: '' })).toMatchObject({ address_suffix: '' });
  });

  test('invalid_request for a zone that is no name', async () => {
    const policy = { domains: { cloudflare_zones: ['localhost'] } };
    const answer = await refusal(root, 'tenants.create', { body: { slug: 'acme', name: 'n', mode: 'live', policy } });
    expect(paths(answer)).toEqual(['policy.domains.cloudflare_zones[0]']);
  });
});

test('tenants.list goes newest first through pages, by status and mode', async () => {
  const made: string[] = [];
  for (const slug of ['t-a', 't-b', 't-c'])
    made.unshift((await tenant(root, slug, { mode: slug === 't-b' ? 'test' : 'live' })).id);
  const first = await call(root, 'tenants.list', { query: { limit: '2' } });
  expect(first.data.map(({ id }) => id)).toEqual(made.slice(0, 2));
  const cursor = first.next_cursor ?? '';
  const second = await call(root, 'tenants.list', { query: { limit: '2', cursor } });
  expect(second).toMatchObject({ data: [{ id: made[2] }], next_cursor: null });
  expect((await call(root, 'tenants.list', { query: { mode: 'test' } })).data.map(({ id }) => id)).toEqual([made[1]]);
  expect((await call(root, 'tenants.list', { query: { status: 'suspended' } })).data).toEqual([]);
  const elsewhere = await refusal(root, 'tenants.list', { query: { mode: 'test', cursor } });
  expect(paths(elsewhere)).toEqual(['cursor']);
  expect(paths(await refusal(root, 'tenants.list', { query: { slug: 't-a' } }))).toEqual(['slug']);
});

test('a cursor works for a day', async () => {
  const start = Date.now();
  const clock = vi.spyOn(Date, 'now');
  // The signing keys in memory are those of the test before; an hour later they are read again.
  clock.mockReturnValue(start + 3_600_000);
  for (const slug of ['t-a', 't-b']) await tenant(root, slug);
  const { next_cursor } = await call(root, 'tenants.list', { query: { limit: '1' } });
  const query = { limit: '1', cursor: next_cursor ?? '' };
  clock.mockReturnValue(start + 25 * 3_600_000);
  expect((await call(root, 'tenants.list', { query })).data).toHaveLength(1);
  clock.mockReturnValue(start + 25 * 3_600_000 + 1);
  expect(await refusal(root, 'tenants.list', { query })).toEqual({ code: 'cursor_expired' });
});

describe('tenants.update', () => {
  test('changes the fields that are named, and says so in the log', async () => {
    const acme = await tenant(root, 'acme', { owner: { email: 'a@example.com' } });
    const changed = await update(acme.id, {
      name: 'Acme',
      timezone: 'Asia/Tokyo',
      owner: { name: 'B', email: 'b@example.com' },
    });
    expect(changed).toMatchObject({
      name: 'Acme',
      timezone: 'Asia/Tokyo',
      owner: { name: 'B', email: 'b@example.com' },
    });
    expect(changed.updated_at > acme.updated_at).toBe(true);
    expect(await update(acme.id, { owner: null })).toMatchObject({ name: 'Acme', owner: null });
    expect(await update(acme.id, { owner: null })).toEqual(await update(acme.id, {}));
    expect(await audited(acme.id)).toEqual(['tenant.create', 'tenant.update', 'tenant.update']);
    const [entry] = await sql("SELECT details_json FROM audit_log WHERE action = 'tenant.update' ORDER BY id");
    expect(JSON.parse(String(entry?.['details_json']))).toEqual({
      changed: ['name', 'timezone', 'owner_name', 'owner_email'],
    });
  });

  test('suspending pauses the active identities, once however often it is asked for', async () => {
    const acme = await tenant(root, 'acme');
    const other = await tenant(root, 'other');
    const active = await identity(root, acme.id, 'active');
    const paused = await identity(root, acme.id, 'paused');
    await call(root, 'identities.update', { params: { identity_id: paused.id }, body: { status: 'paused' } });
    const stranger = await identity(root, other.id, 'stranger');
    const read = (id: string) => call(root, 'identities.get', { params: { identity_id: id } });

    const suspended = await update(acme.id, { status: 'suspended' });
    expect(suspended).toMatchObject({ status: 'suspended', suspended_by: 'platform' });
    expect(await read(active.id)).toMatchObject({ status: 'paused', pause_reason: 'tenant_suspended' });
    expect(await read(paused.id)).toMatchObject({ status: 'paused', pause_reason: 'manual' });
    expect(await read(stranger.id)).toMatchObject({ status: 'active' });
    expect(await update(acme.id, { status: 'suspended' })).toEqual(suspended);
    const told = await eventsOf(active.id);
    expect(told.map(({ type }) => type)).toEqual(['identity.created', 'identity.paused']);
    expect(told[1]).toMatchObject({ data: { identity_id: active.id, reason: 'tenant_suspended' } });
    expect(await eventTypes(paused.id)).toEqual(['identity.created', 'identity.paused']);

    const resumed = await update(acme.id, { status: 'active' });
    expect(resumed).toMatchObject({ status: 'active', suspended_by: null });
    expect(await read(active.id)).toMatchObject({ status: 'active', pause_reason: null });
    expect(await read(paused.id)).toMatchObject({ status: 'paused', pause_reason: 'manual' });
    expect(await update(acme.id, { status: 'active' })).toEqual(resumed);
    expect(await eventTypes(active.id)).toEqual(['identity.created', 'identity.paused', 'identity.resumed']);
    expect(await eventTypes(paused.id)).toEqual(['identity.created', 'identity.paused']);
    expect(await eventTypes(stranger.id)).toEqual(['identity.created']);
    expect(await audited(acme.id)).toEqual(['tenant.create', 'tenant.suspend', 'tenant.resume']);

    await update(acme.id, { status: 'suspended' });
    expect((await eventTypes(active.id)).slice(-2)).toEqual(['identity.resumed', 'identity.paused']);
  });

  test('a mailbox that could neither be told nor left to the queue is told by the same request once more', async () => {
    const acme = await tenant(root, 'acme');
    const one = await identity(root, acme.id, 'one');
    for (const [status, type] of [
      ['suspended', 'identity.paused'],
      ['active', 'identity.resumed'],
    ] as const) {
      const broken = vi.spyOn(IdentityMailbox.prototype, 'emitEvent').mockImplementation(() => {
        throw new Error('away');
      });
      const full = vi.spyOn(env.Q_OUTBOUND, 'sendBatch').mockRejectedValue(new Error('away'));
      const request = { params: { tenant_id: acme.id }, body: { status } };
      expect(await refusal(root, 'tenants.update', request)).toEqual({ code: 'unavailable', step: 'mailbox' });
      broken.mockRestore();
      full.mockRestore();
      expect(await call(root, 'tenants.get', { params: { tenant_id: acme.id } })).toMatchObject({ status });
      await update(acme.id, { status });
      await update(acme.id, { status });
      expect((await eventTypes(one.id)).filter((name) => name === type)).toHaveLength(1);
    }
  });

  test.each(['erasing', 'erased'])('tenant_erased for one that is %s', async (status) => {
    const acme = await tenant(root, 'acme');
    await sql('UPDATE tenants SET status = ? WHERE id = ?', status, acme.id);
    const params = { tenant_id: acme.id };
    expect(await refusal(root, 'tenants.update', { params, body: { name: 'x' } })).toEqual({ code: 'tenant_erased' });
    const policy = await refusal(root, 'tenants.policy.update', { params, body: { policy: { max_recipients: 1 } } });
    expect(policy).toEqual({ code: 'tenant_erased' });
  });

  test('unavailable when others keep changing the tenant', async () => {
    const acme = await tenant(root, 'acme');
    await sql('CREATE TRIGGER overtaken BEFORE UPDATE ON tenants BEGIN SELECT RAISE(IGNORE); END');
    const answer = await refusal(root, 'tenants.update', { params: { tenant_id: acme.id }, body: { name: 'x' } });
    expect(answer).toEqual({ code: 'unavailable', step: 'directory' });
  });

  test('invalid_request for a zone of time that does not exist', async () => {
    const acme = await tenant(root, 'acme');
    const answer = await refusal(root, 'tenants.update', {
      params: { tenant_id: acme.id },
      body: { timezone: 'Mars/Olympus' },
    });
    expect(paths(answer)).toEqual(['timezone']);
  });
});

test('only platform keys manage tenants; a tenant key reads its own', async () => {
  const acme = await tenant(root, 'acme');
  const other = await tenant(root, 'other');
  const key = await makeKey(root, { level: 'tenant', tenant_id: acme.id });
  expect(await call(key, 'tenants.get', { params: { tenant_id: acme.id } })).toEqual(acme);
  expect(await refusal(key, 'tenants.get', { params: { tenant_id: other.id } })).toEqual({ code: 'tenant_not_found' });
  const denied = { code: 'permission_denied', required: 'tenants:manage' };
  expect(await refusal(key, 'tenants.list')).toEqual(denied);
  expect(await refusal(key, 'tenants.create', { body: { slug: 'x1', name: 'n', mode: 'live' } })).toEqual(denied);
  expect(await refusal(key, 'tenants.update', { params: { tenant_id: acme.id }, body: {} })).toEqual(denied);
  for (const tenant_id of ['ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense']) {
    expect(await refusal(root, 'tenants.get', { params: { tenant_id } })).toEqual({ code: 'tenant_not_found' });
    expect(await refusal(root, 'tenants.update', { params: { tenant_id }, body: {} })).toEqual({
      code: 'tenant_not_found',
    });
  }
});
