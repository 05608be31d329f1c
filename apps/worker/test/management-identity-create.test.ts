import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest';
import { config } from '../src/env.ts';
import { IdentityMailbox } from '../src/index.ts';
import { hashAddress } from '../src/ports/secrets.ts';
import {
  addDomain,
  audited,
  call,
  deploy,
  eventsOf,
  eventTypes,
  identity,
  makeKey,
  PLATFORM_DOMAIN,
  paths,
  refusal,
  send,
  sql,
  statuses,
  tenant,
} from './support.ts';

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

const route = 'identities.create';
const input = (body: object, tenant_id = acme) => ({ params: { tenant_id }, body: { display_name: 'Ann', ...body } });
const refused = (body: object, tenant_id = acme, by = key) => refusal(by, route, input(body, tenant_id));

test('the least: a name, and everything else filled in', async () => {
  const made = await call(key, route, { ...input({ username: 'Ann' }), status: 201 });
  expect(made).toMatchObject({
    tenant_id: acme,
    username: 'ann',
    display_name: 'Ann',
    purpose: null,
    status: 'active',
    pause_reason: null,
    primary_address: 'ann.acme@agents.example',
    addresses: [
      {
        identity_id: made.id,
        address: 'ann.acme@agents.example',
        local_part: 'ann.acme',
        domain_id: PLATFORM_DOMAIN,
        role: 'primary',
        status: 'active',
        forwarding: null,
      },
    ],
    owner: null,
    signature: { text: null, html: null },
    send_policy: { daily_cap: 500, auto_reply: 'allowed', require_known_recipient: false },
    metadata: {},
    client_id: null,
  });
  expect(await call(key, 'identities.get', { params: { identity_id: made.id } })).toEqual(made);
  expect(await audited(made.id)).toEqual(['identity.create']);
  const [event, ...more] = await eventsOf(made.id);
  expect(more).toEqual([]);
  expect(event).toMatchObject({ type: 'identity.created', identity_id: made.id, data: { identity: made } });
});

test('the most: everything said is kept, the signature made safe', async () => {
  const body = {
    username: 'ann',
    display_name: 'Ann \u00c5 \u{1f4ec}',
    purpose: 'support',
    owner: { name: 'Ada', email: 'Ada@Example.com' },
    signature: { text: 'Ann', html: '<p onclick="x()">Ann<script>alert(1)</script></p>' },
    send_policy: { daily_cap: 7, auto_reply: 'denied', require_known_recipient: true },
    metadata: { team: 'blue' },
    client_id: 'c-1',
  };
  expect(await identity(key, acme, 'ann', body)).toMatchObject({
    ...body,
    owner: { name: 'Ada', email: 'ada@example.com' },
    signature: { text: 'Ann', html: '<p>Ann</p>' },
  });
});

test('the default tenant has addresses without a suffix, and role names are kept from it', async () => {
  const bare = (await tenant(root, 'default', { address_suffix: '' })).id;
  expect(await identity(root, bare, 'ann')).toMatchObject({ primary_address: 'ann@agents.example' });
  expect((await refused({ username: 'info' }, bare, root)).code).toBe('address_reserved');
  expect(await identity(root, acme, 'info')).toMatchObject({ primary_address: 'info.acme@agents.example' });
});

describe('on a domain of the tenant', () => {
  test('the address there is the primary, that of the platform an alias', async () => {
    const domain_id = await addDomain(acme, 'mail.acme.example', { state: 'degraded' });
    const made = await identity(key, acme, 'ann', { domain_id });
    expect(made.primary_address).toBe('ann@mail.acme.example');
    expect(made.addresses).toMatchObject([
      { address: 'ann.acme@agents.example', role: 'alias', status: 'active' },
      { address: 'ann@mail.acme.example', role: 'primary', status: 'active', domain_id, forwarding: null },
    ]);
  });

  test('forwarding is unverified where the domain forwards', async () => {
    const domain_id = await addDomain(acme, 'acme.example', { routing_mode: 'forward', inbound: 'forward' });
    const made = await identity(key, acme, 'ann', { domain_id });
    expect(made.addresses.map(({ forwarding }) => forwarding)).toEqual([null, 'unverified']);
  });

  test.each(['pending', 'verifying', 'failing', 'suspended', 'removing'])(
    'domain_not_ready while %s',
    async (state) => {
      const domain_id = await addDomain(acme, 'acme.example', { state });
      expect(await refused({ username: 'ann', domain_id })).toEqual({ code: 'domain_not_ready', state });
    },
  );

  test('domain_not_found for one that is missing, malformed or of another tenant', async () => {
    const other = (await tenant(root, 'other')).id;
    for (const domain_id of [await addDomain(other, 'other.example'), 'dom_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense']) {
      expect(await refused({ username: 'ann', domain_id })).toEqual({ code: 'domain_not_found' });
    }
  });

  test('invalid_request for the platform domain, cf_token_required where each address needs a rule', async () => {
    expect(paths(await refused({ username: 'ann', domain_id: PLATFORM_DOMAIN }))).toEqual(['domain_id']);
    const domain_id = await addDomain(acme, 'sub.acme.example', { routing_mode: 'literal' });
    expect(await refused({ username: 'ann', domain_id })).toEqual({ code: 'cf_token_required' });
  });
});

describe('client_id', () => {
  test('a repeat answers with the identity as it is, and tells nothing twice', async () => {
    const body = { username: 'ann', client_id: 'c-1', metadata: { a: '1', b: '2' } };
    const made = await call(key, route, { ...input(body), status: 201 });
    const again = { metadata: { b: '2', a: '1' }, client_id: 'c-1', username: 'ann' };
    expect(await call(key, route, { ...input(again), status: 200 })).toEqual(made);
    const params = { identity_id: made.id };
    const renamed = await call(key, 'identities.update', { params, body: { display_name: 'Anna' } });
    expect(await call(root, route, { ...input(body), status: 200 })).toEqual(renamed);
    expect(await eventTypes(made.id)).toEqual(['identity.created', 'identity.updated']);
    expect(await sql('SELECT id FROM identities')).toHaveLength(1);
  });

  test('client_id_conflict with another body; free in another tenant', async () => {
    await identity(key, acme, 'ann', { client_id: 'c-1' });
    expect(await refused({ username: 'ann', client_id: 'c-1' })).toEqual({ code: 'client_id_conflict' });
    const other = (await tenant(root, 'other')).id;
    await identity(root, other, 'ann', { client_id: 'c-1' });
  });

  test('the same request many times at once makes one identity', async () => {
    const request = input({ username: 'ann', client_id: 'c-1' });
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(key, route, request)));
    expect(statuses(answers)).toEqual([200, 200, 200, 200, 201]);
    const ids = new Set(await Promise.all(answers.map(async (answer) => (await answer.json<{ id: string }>()).id)));
    expect(ids.size).toBe(1);
    expect(await eventTypes([...ids][0] ?? '')).toEqual(['identity.created']);
  });

  test('works in a suspended tenant; one that is deleted is shown without waking its mailbox', async () => {
    const made = await identity(key, acme, 'ann', { client_id: 'c-1' });
    await call(root, 'tenants.update', { params: { tenant_id: acme }, body: { status: 'suspended' } });
    const request = input({ username: 'ann', display_name: 'ann', client_id: 'c-1' });
    expect(await call(key, route, { ...request, status: 200 })).toMatchObject({ id: made.id, status: 'paused' });
    await sql("UPDATE identities SET status = 'deleted', pause_reason = NULL WHERE id = ?", made.id);
    await sql('DELETE FROM addresses WHERE identity_id = ?', made.id);
    const init = vi.spyOn(IdentityMailbox.prototype, 'init');
    expect(await call(key, route, { ...request, status: 200 })).toMatchObject({
      status: 'deleted',
      primary_address: '',
    });
    expect(init).not.toHaveBeenCalled();
  });

  test('unavailable when the mailbox cannot be told; the repeat makes up for it', async () => {
    const broken = vi.spyOn(IdentityMailbox.prototype, 'init').mockRejectedValue(new Error('away'));
    const body = { username: 'ann', client_id: 'c-1' };
    expect(await refused(body)).toEqual({ code: 'unavailable', step: 'mailbox' });
    expect(await refused(body)).toEqual({ code: 'unavailable', step: 'mailbox' });
    broken.mockRestore();
    const made = await call(key, route, { ...input(body), status: 200 });
    expect(await eventTypes(made.id)).toEqual(['identity.created']);
  });
});

describe('under an Idempotency-Key, when the mailbox could not be told', () => {
  const keyed = { headers: { 'idempotency-key': 'make ann' } };
  const ann = { username: 'ann', display_name: 'Ann' };
  let broken: MockInstance;

  beforeEach(async () => {
    broken = vi.spyOn(IdentityMailbox.prototype, 'init').mockRejectedValue(new Error('away'));
    const unavailable = { code: 'unavailable', step: 'mailbox' };
    // The first makes the identity; as long as its mailbox is away its repeats say so, and nothing else.
    for (let i = 0; i < 2; i++) expect(await refusal(key, route, { ...input(ann), ...keyed })).toEqual(unavailable);
  });

  test('a repeat finishes what was made, and is answered as the first would have been', async () => {
    broken.mockRestore();
    const made = await call(key, route, { ...input(ann), ...keyed, status: 201 });
    expect(await eventTypes(made.id)).toEqual(['identity.created']);
    expect(await audited(made.id)).toEqual(['identity.create']);
    const response = await send(key, route, { ...input(ann), ...keyed });
    expect([response.status, response.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
    expect(await response.json()).toMatchObject({ id: made.id });
    expect(await sql("SELECT id FROM identities WHERE username = 'ann'")).toEqual([{ id: made.id }]);
  });

  test('another request does not get the key, nor what was made under it', async () => {
    broken.mockRestore();
    for (const body of [
      { ...ann, username: 'bob' },
      { ...ann, display_name: 'Another' },
    ]) {
      const answer = await refusal(key, route, { ...input(body), ...keyed });
      expect(answer).toEqual({ code: 'idempotency_conflict' });
    }
    expect(await refusal(key, route, input(ann))).toEqual({ code: 'username_taken' });
    await call(key, route, { ...input(ann), ...keyed, status: 201 });
  });

  test('a repeat shows one that was deleted since, without waking its mailbox', async () => {
    await sql("UPDATE identities SET status = 'deleting'");
    expect(await call(key, route, { ...input(ann), ...keyed, status: 201 })).toMatchObject({ status: 'deleting' });
  });
});

describe('names', () => {
  test.each([
    ['address_reserved', 'postmaster'],
    ['address_reserved', 'P0stmaster'],
    ['address_reserved', 'rnailer-daemon'],
    ['address_reserved', 'pm-desk'],
    ['address_unsupported', '\u0430buse'],
    ['address_unsupported', 'jos\u00e9'],
    ['address_invalid', ''],
    ['address_invalid', 'a..b'],
    ['address_invalid', 'x'.repeat(25)],
  ])('%s for %j', async (code, username) => {
    const answer = await refused({ username });
    expect(answer.code).toBe(code);
    expect(paths(answer)).toEqual(['username']);
  });

  test('local_part_too_long with the suffix', async () => {
    const long = (await tenant(root, 'long', { address_suffix: `.${'s'.repeat(31)}` })).id;
    expect((await refused({ username: 'a'.repeat(9) }, long, root)).code).toBe('local_part_too_long');
    await identity(root, long, 'a'.repeat(8));
  });

  test('username_taken for the same name or one that looks like it, also when both come at once', async () => {
    await identity(key, acme, 'agent-10');
    for (const username of ['agent-10', 'Agent-10', 'agent-lo']) {
      expect(await refused({ username })).toEqual({ code: 'username_taken' });
    }
    const answers = await Promise.all([1, 2, 3].map(() => send(key, route, input({ username: 'bob' }))));
    expect(statuses(answers)).toEqual([201, 409, 409]);
    expect(await sql("SELECT id FROM addresses WHERE local_part = 'bob.acme'")).toHaveLength(1);
  });

  test('address_taken by another tenant, or for ever by an identity that is gone', async () => {
    const bare = (await tenant(root, 'default', { address_suffix: '' })).id;
    await identity(root, bare, 'ann.acme');
    expect(await refused({ username: 'ann' })).toEqual({ code: 'address_taken' });
    const hash = await hashAddress(config(env).hash_key, 'bob.acme@agents.example');
    await sql("INSERT INTO address_tombstones VALUES (?, 'idn_gone', 'deleted')", hash);
    expect(await refused({ username: 'bob' })).toEqual({ code: 'address_taken' });
    expect(await sql("SELECT id FROM identities WHERE username IN ('bob', 'ann')")).toEqual([]);
  });
});

test('a daily cap above the policy needs a platform key', async () => {
  await call(root, 'tenants.policy.update', {
    params: { tenant_id: acme },
    body: { policy: { identity_daily_send_cap: 50 } },
  });
  expect(await refused({ username: 'ann', send_policy: { daily_cap: 51 } })).toEqual({
    code: 'scope_denied',
    field: 'send_policy.daily_cap',
    reason: 'above_ceiling',
    ceiling: 50,
  });
  const at = await identity(key, acme, 'ann', { send_policy: { daily_cap: 50 } });
  const above = await identity(root, acme, 'bob', { send_policy: { daily_cap: 51 } });
  const preset = await identity(key, acme, 'eve', { send_policy: { daily_cap: null } });
  expect([at, above, preset].map(({ send_policy }) => send_policy.daily_cap)).toEqual([50, 51, 50]);
});

test('tenants that are suspended or erased get none', async () => {
  await sql("UPDATE tenants SET status = 'suspended' WHERE id = ?", acme);
  expect(await refused({ username: 'ann' })).toEqual({ code: 'tenant_suspended' });
  await sql("UPDATE tenants SET status = 'erased' WHERE id = ?", acme);
  expect(await refused({ username: 'ann' }, acme, root)).toEqual({ code: 'tenant_erased' });
});

test('who may not: keys of another tenant, of an identity, or without the permission', async () => {
  const other = (await tenant(root, 'other')).id;
  expect(await refused({ username: 'ann' }, other)).toEqual({ code: 'tenant_not_found' });
  const ann = await identity(key, acme, 'ann');
  const own = await makeKey(root, { level: 'identity', identity_id: ann.id });
  expect(await refused({ username: 'bob' }, acme, own)).toEqual({ code: 'scope_denied' });
  const weak = await makeKey(root, { level: 'tenant', tenant_id: acme, permissions: ['identities:read'] });
  expect(await refused({ username: 'bob' }, acme, weak)).toEqual({
    code: 'permission_denied',
    required: 'identities:write',
  });
});

test('invalid_request with the paths of what is wrong', async () => {
  const answer = await refused({
    username: 'ann',
    display_name: 'A\r\nB',
    owner: { name: 'Ada', email: 'nobody' },
    metadata: { a: 'x'.repeat(513) },
    send_policy: { daily_cap: -1 },
    color: 'red',
  });
  expect(paths(answer).sort()).toEqual(['color', 'display_name', 'metadata.a', 'owner.email', 'send_policy.daily_cap']);
});

test('unavailable until the quota of the tenant and the platform domain are there', async () => {
  await sql("UPDATE tenants SET quota_do_id = ''");
  expect(await refused({ username: 'ann' })).toEqual({ code: 'unavailable', step: 'quota' });
  expect(await refusal(key, 'usage.get')).toEqual({ code: 'unavailable', step: 'quota' });
  await sql('DELETE FROM domains');
  expect(await refused({ username: 'ann' })).toEqual({ code: 'unavailable', step: 'platform_domain' });
});
