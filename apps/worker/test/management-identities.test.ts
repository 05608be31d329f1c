import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { IdentityMailbox } from '../src/index.ts';
import {
  audited,
  type Body,
  call,
  deploy,
  eventsOf,
  eventTypes,
  identity,
  makeKey,
  paths,
  refusal,
  sql,
  tenant,
} from './support.ts';

let root: string;
let acme: string;
let other: string;
/** Keys of acme, the second of its identity ann. */
let key: string;
let annKey: string;
let ann: string;
let stranger: string;

beforeEach(async () => {
  root = await deploy();
  acme = (await tenant(root, 'acme')).id;
  other = (await tenant(root, 'other')).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: acme });
  ann = (await identity(root, acme, 'ann')).id;
  annKey = await makeKey(root, { level: 'identity', identity_id: ann });
  stranger = (await identity(root, other, 'stranger')).id;
});

afterEach(() => {
  vi.restoreAllMocks();
});

const MISSING = { code: 'identity_not_found' };
const read = (by: string, id: string) => call(by, 'identities.get', { params: { identity_id: id } });
const update = (by: string, id: string, body: Body<'identities.update'>) =>
  call(by, 'identities.update', { params: { identity_id: id }, body });
const refused = (by: string, id: string, body: object) =>
  refusal(by, 'identities.update', { params: { identity_id: id }, body });

async function makeSystem(): Promise<string> {
  const { id } = await identity(root, acme, 'sys');
  await sql('UPDATE identities SET is_system = 1 WHERE id = ?', id);
  return id;
}

describe('lists', () => {
  const names = async (by: string, query = {}) =>
    (await call(by, 'identities.list', { query })).data.map(({ username }) => username);

  test('show each key what it reaches, newest first, never the system identity', async () => {
    await identity(root, acme, 'bob');
    await makeSystem();
    expect(await names(root)).toEqual(['bob', 'stranger', 'ann']);
    expect(await names(root, { tenant_id: acme })).toEqual(['bob', 'ann']);
    expect(await names(key)).toEqual(['bob', 'ann']);
    expect(await names(key, { tenant_id: acme })).toEqual(['bob', 'ann']);
    expect(await names(annKey)).toEqual(['ann']);
    const of = async (by: string) =>
      (await call(by, 'identities.listOfTenant', { params: { tenant_id: acme } })).data.map(({ username }) => username);
    expect(await of(root)).toEqual(['bob', 'ann']);
    expect(await of(key)).toEqual(['bob', 'ann']);
    expect(await of(annKey)).toEqual(['ann']);
  });

  test('filter and go through pages', async () => {
    const params = { tenant_id: acme };
    await identity(root, acme, 'bob', { purpose: 'sales', client_id: 'c-1' });
    await update(root, ann, { status: 'paused' });
    expect(await names(key, { status: 'paused' })).toEqual(['ann']);
    expect(await names(key, { purpose: 'sales' })).toEqual(['bob']);
    expect(await names(key, { client_id: 'c-1' })).toEqual(['bob']);
    expect(await names(key, { client_id: 'c-1', status: 'paused' })).toEqual([]);
    for (const route of ['identities.list', 'identities.listOfTenant'] as const) {
      const input = route === 'identities.list' ? {} : { params };
      const first = await call(key, route, { ...input, query: { limit: '1' } });
      const cursor = first.next_cursor ?? '';
      const second = await call(key, route, { ...input, query: { limit: '1', cursor } });
      expect([...first.data, ...second.data].map(({ username }) => username)).toEqual(['bob', 'ann']);
      expect(second.next_cursor).toBeNull();
      const query = { limit: '1', status: 'paused', cursor };
      expect(paths(await refusal(key, route, { ...input, query }))).toEqual(['cursor']);
      expect(paths(await refusal(key, route, { ...input, query: { name: 'x' } }))).toEqual(['name']);
    }
  });

  test('tenant_not_found for a tenant out of reach', async () => {
    const nobody = 'ten_01JABCDEFGHJKMNPQRSTVWXYZ0';
    const noTenant = { code: 'tenant_not_found' };
    expect(await refusal(key, 'identities.list', { query: { tenant_id: other } })).toEqual(noTenant);
    expect(await refusal(key, 'identities.listOfTenant', { params: { tenant_id: other } })).toEqual(noTenant);
    for (const tenant_id of [nobody, 'nonsense']) {
      expect(await refusal(root, 'identities.list', { query: { tenant_id } })).toEqual(noTenant);
      expect(await refusal(root, 'identities.listOfTenant', { params: { tenant_id } })).toEqual(noTenant);
    }
  });
});

describe('identities.lookup', () => {
  const lookup = (by: string, address: string) => call(by, 'identities.lookup', { query: { address } });
  const fails = (by: string, address: string) => refusal(by, 'identities.lookup', { query: { address } });

  test('finds an address that receives, whatever its case', async () => {
    expect(await lookup(key, 'ANN.acme@Agents.Example')).toEqual(await read(key, ann));
    await sql("UPDATE addresses SET status = 'retiring' WHERE identity_id = ?", ann);
    expect((await lookup(annKey, 'ann.acme@agents.example')).id).toBe(ann);
  });

  test.each(['pending', 'retired'])('not one that is %s', async (status) => {
    await sql('UPDATE addresses SET status = ? WHERE identity_id = ?', status, ann);
    expect(await fails(key, 'ann.acme@agents.example')).toEqual(MISSING);
  });

  test('not what is unknown, out of reach or no address', async () => {
    expect(await fails(key, 'nobody@agents.example')).toEqual(MISSING);
    expect(await fails(key, 'stranger.other@agents.example')).toEqual(MISSING);
    await identity(root, acme, 'bob');
    expect(await fails(annKey, 'bob.acme@agents.example')).toEqual(MISSING);
    expect(await fails(key, 'nonsense')).toEqual(MISSING);
    await makeSystem();
    expect(await fails(key, 'sys.acme@agents.example')).toEqual(MISSING);
    expect((await lookup(root, 'sys.acme@agents.example')).username).toBe('sys');
    expect(paths(await refusal(key, 'identities.lookup'))).toEqual(['address']);
  });
});

describe('one identity', () => {
  test('is read with its addresses by those who reach it', async () => {
    for (const by of [root, key, annKey]) {
      const shown = await read(by, ann);
      const { data, next_cursor } = await call(by, 'identities.addresses.list', { params: { identity_id: ann } });
      expect(data).toEqual(shown.addresses);
      expect(next_cursor).toBeNull();
    }
  });

  test.each(['identities.get', 'identities.update', 'identities.addresses.list'] as const)(
    '%s: one out of reach looks missing',
    async (route) => {
      const bob = (await identity(root, acme, 'bob')).id;
      const system = await makeSystem();
      const input = (identity_id: string) => ({
        params: { identity_id },
        ...(route === 'identities.update' ? { body: {} } : {}),
      });
      for (const id of [stranger, system, 'idn_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense']) {
        expect(await refusal(key, route, input(id))).toEqual(MISSING);
      }
      for (const id of [stranger, bob, system]) expect(await refusal(annKey, route, input(id))).toEqual(MISSING);
      await call(root, route, input(system));
    },
  );

  test.each(['deleting', 'deleted'])('on its way out (%s) it is only read', async (status) => {
    await sql('UPDATE identities SET status = ? WHERE id = ?', status, ann);
    await sql('DELETE FROM addresses WHERE identity_id = ?', ann);
    expect(await read(key, ann)).toMatchObject({ status, primary_address: '', addresses: [] });
    expect((await call(key, 'identities.addresses.list', { params: { identity_id: ann } })).data).toEqual([]);
    expect(await refused(key, ann, { display_name: 'x' })).toEqual(MISSING);
  });
});

describe('identities.update', () => {
  test('changes what is named, keeps the rest, and tells which fields changed', async () => {
    const before = await read(key, ann);
    const body = {
      display_name: 'Ann',
      purpose: 'support',
      owner: { name: 'Ada', email: 'ada@example.com' },
      signature: { text: 'Ann', html: '<b>Ann</b><style>b{}</style>' },
      send_policy: { daily_cap: 9, auto_reply: 'denied' as const },
      metadata: { a: 'b' },
    };
    const after = await update(key, ann, body);
    expect(after).toMatchObject({
      ...before,
      ...body,
      signature: { text: 'Ann', html: '<b>Ann</b>' },
      send_policy: { daily_cap: 9, auto_reply: 'denied', require_known_recipient: false },
      updated_at: after.updated_at,
    });
    expect(after.updated_at > before.updated_at).toBe(true);
    expect(await read(key, ann)).toEqual(after);
    const [, event] = await eventsOf(ann);
    expect(event).toMatchObject({ type: 'identity.updated', data: { identity: after, changed: Object.keys(body) } });

    const last = await update(annKey, ann, {
      display_name: 'Ann',
      purpose: null,
      owner: null,
      signature: { html: null },
      send_policy: { daily_cap: null, require_known_recipient: true },
    });
    expect(last).toMatchObject({
      display_name: 'Ann',
      purpose: null,
      owner: null,
      signature: { text: 'Ann', html: null },
      send_policy: { daily_cap: 500, auto_reply: 'denied', require_known_recipient: true },
      metadata: { a: 'b' },
    });
    expect((await eventsOf(ann))[2]?.data['changed']).toEqual(['purpose', 'owner', 'signature', 'send_policy']);
    expect(await audited(ann)).toEqual(['identity.create', 'identity.update', 'identity.update']);
  });

  test('that changes nothing tells and logs nothing', async () => {
    const after = await update(key, ann, { display_name: 'Ann', status: 'paused' });
    expect(await update(key, ann, { display_name: 'Ann', status: 'paused' })).toEqual(after);
    expect(await update(key, ann, {})).toEqual(after);
    expect(await eventTypes(ann)).toEqual(['identity.created', 'identity.updated', 'identity.paused']);
    expect(await audited(ann)).toHaveLength(3);
  });

  test('a manual pause is made and ended by every key that may write', async () => {
    for (const by of [annKey, key, root]) {
      expect(await update(by, ann, { status: 'paused' })).toMatchObject({ status: 'paused', pause_reason: 'manual' });
      expect(await update(by, ann, { status: 'active' })).toMatchObject({ status: 'active', pause_reason: null });
    }
    const told = await eventsOf(ann);
    expect(told.slice(1, 3)).toMatchObject([
      { type: 'identity.paused', data: { identity_id: ann, reason: 'manual' } },
      { type: 'identity.resumed', data: { identity_id: ann } },
    ]);
    expect(told).toHaveLength(7);
    expect(await audited(ann)).toHaveLength(7);
  });

  test('a pause for abuse is ended by a tenant or platform key, on record', async () => {
    await sql("UPDATE identities SET status = 'paused', pause_reason = 'abuse_threshold' WHERE id = ?", ann);
    expect(await refused(annKey, ann, { status: 'active' })).toEqual({
      code: 'scope_denied',
      field: 'status',
      reason: 'not_writable',
    });
    expect(await update(annKey, ann, { status: 'paused' })).toMatchObject({ pause_reason: 'abuse_threshold' });
    expect(await update(key, ann, { status: 'active' })).toMatchObject({ status: 'active' });
    const [entry] = await sql("SELECT details_json FROM audit_log WHERE action = 'identity.resume'");
    expect(entry).toEqual({ details_json: '{"reason":"abuse_threshold"}' });
  });

  test('a pause that came with the suspension of the tenant ends only with it', async () => {
    await call(root, 'tenants.update', { params: { tenant_id: acme }, body: { status: 'suspended' } });
    for (const by of [annKey, key, root]) {
      expect(await refused(by, ann, { status: 'active', display_name: 'x' })).toEqual({
        code: 'identity_paused',
        reason: 'tenant_suspended',
      });
    }
    expect(await update(key, ann, { display_name: 'still writable' })).toMatchObject({ status: 'paused' });
    await call(root, 'tenants.update', { params: { tenant_id: acme }, body: { status: 'active' } });
    expect(await read(key, ann)).toMatchObject({ status: 'active', display_name: 'still writable' });
  });

  test('scope_denied for a daily cap above the policy, except from a platform key', async () => {
    const answer = { code: 'scope_denied', field: 'send_policy.daily_cap', reason: 'above_ceiling', ceiling: 500 };
    const body = { send_policy: { daily_cap: 501 } };
    expect(await refused(key, ann, body)).toEqual(answer);
    expect(await refused(annKey, ann, body)).toEqual(answer);
    expect((await update(root, ann, body)).send_policy.daily_cap).toBe(501);
  });

  test('events lost on the way are told by the same request once more', async () => {
    const broken = vi.spyOn(IdentityMailbox.prototype, 'emitEvent').mockImplementation(() => {
      throw new Error('away');
    });
    const body = { display_name: 'Ann', status: 'paused' as const };
    expect(await refused(key, ann, body)).toEqual({ code: 'unavailable', step: 'mailbox' });
    broken.mockRestore();
    const after = await update(key, ann, body);
    expect(after).toMatchObject(body);
    await update(key, ann, body);
    const told = await eventsOf(ann);
    expect(told.map(({ type }) => type)).toEqual(['identity.created', 'identity.updated', 'identity.paused']);
    expect(told[1]).toMatchObject({ data: { changed: ['display_name'] } });
    expect(told[2]).toMatchObject({ data: { reason: 'manual' } });
    await update(key, ann, { metadata: { a: 'b' } });
    await update(key, ann, body);
    expect(await eventTypes(ann)).toHaveLength(4);
  });

  test('a mailbox that never learned whose it is learns it with the first event', async () => {
    const lost = vi.spyOn(IdentityMailbox.prototype, 'init').mockRejectedValue(new Error('away'));
    const params = { tenant_id: acme };
    const bob = await identity(key, acme, 'bob');
    lost.mockRestore();
    await call(root, 'tenants.update', { params, body: { status: 'suspended' } });
    expect(await eventTypes(bob.id)).toEqual(['identity.created', 'identity.paused']);
  });

  test('writers at once lose nothing', async () => {
    await Promise.all([
      update(key, ann, { display_name: 'Ann' }),
      update(key, ann, { purpose: 'p' }),
      update(key, ann, { metadata: { a: 'b' } }),
    ]);
    expect(await read(key, ann)).toMatchObject({ display_name: 'Ann', purpose: 'p', metadata: { a: 'b' } });
    const changed = (await eventsOf(ann)).slice(1).map(({ data }) => data['changed']);
    expect(changed).toHaveLength(3);
    expect(changed).toEqual(expect.arrayContaining([['display_name'], ['metadata'], ['purpose']]));
  });

  test('unavailable when others keep changing the identity', async () => {
    await sql('CREATE TRIGGER overtaken BEFORE UPDATE ON identities BEGIN SELECT RAISE(IGNORE); END');
    expect(await refused(key, ann, { display_name: 'x' })).toEqual({ code: 'unavailable', step: 'directory' });
  });

  test('invalid_request and permission_denied', async () => {
    const answer = await refused(key, ann, { username: 'new', status: 'deleted', display_name: '' });
    expect(paths(answer).sort()).toEqual(['display_name', 'status', 'username']);
    const weak = await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: ['identities:read'] });
    expect(await refused(weak, ann, {})).toEqual({ code: 'permission_denied', required: 'identities:write' });
  });
});
