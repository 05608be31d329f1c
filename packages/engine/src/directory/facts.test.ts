import { beforeEach, describe, expect, test } from 'vitest';
import { type Db, statement } from '../sql.ts';
import { auditEntry, directory, identityRow, NOW, newIdentity, tenantRow } from './directory.fixture.ts';
import { type Deployment, factsStatements, parseFacts, readScope, type SendScope } from './facts.ts';
import { type IdentityRow, insertIdentity } from './identities.ts';
import { routeIdentity, routeRecipient, routeSender } from './routing.ts';
import { insertTenant, type TenantRow } from './tenants.ts';

/** What the directory says about a send. */

const DEPLOYMENT: Deployment = { default_policy: { max_recipients: 20 }, ses_configured: true, smtp_enabled: false };
const JO = 'jo@example.net';
const ADDRESS = 'desk@agents.example';

let db: Db;
let tenant: TenantRow;
let identity: IdentityRow;

beforeEach(async () => {
  db = await directory();
  tenant = tenantRow('acme', { policy_json: '{"domain_fallback":false}', timezone: 'Europe/Berlin' });
  identity = identityRow(tenant.id, 'desk', { send_policy_json: '{"daily_cap":7}' });
  await insertTenant(db, tenant, auditEntry('tenant.create', tenant.id));
  await insertIdentity(db, newIdentity(identity, ADDRESS));
});

async function factsFor(...recipients: string[]): Promise<SendScope> {
  const query = {
    identity_id: identity.id,
    recipients: recipients.map((address) => ({ address, hash: `hash of ${address}` })),
    now: NOW,
  };
  const facts = parseFacts(query, await db.batch(factsStatements(query)), DEPLOYMENT);
  if (facts === undefined) throw new Error('no facts');
  return facts;
}

async function suppressed(address: string, expires: number | null, owner = tenant.id): Promise<void> {
  const insert = `INSERT INTO suppressions (tenant_id, address_hash, address_hint, reason, created_at, expires_at)
    VALUES (?, ?, '', 'complaint', 1, ?)`;
  await db.batch([statement(insert, owner, `hash of ${address}`, expires)]);
}

async function listed(kind: string, entry: string, direction = 'send', owner = tenant.id): Promise<void> {
  const insert = 'INSERT INTO sender_lists (tenant_id, direction, kind, entry, created_at) VALUES (?, ?, ?, ?, 1)';
  await db.batch([statement(insert, owner, direction, kind, entry)]);
}

describe('the facts of a send', () => {
  test('are those of identity, tenant and addresses, with the layers of policy put together', async () => {
    const facts = await factsFor(JO);
    expect(facts).toMatchObject({
      identity: { id: identity.id, status: 'active', is_system: false, send_policy: { daily_cap: 7 } },
      tenant: { id: tenant.id, mode: 'live', timezone: 'Europe/Berlin' },
      platform_domain: 'agents.example',
      suppressions: {},
      send_block: [],
      send_allow: [],
      local_addresses: [],
      deployment: { ses_configured: true, smtp_enabled: false },
      mailbox_do_id: 'mailbox-desk',
      quota_do_id: 'quota',
    });
    expect(facts.tenant.policy).toMatchObject({
      domain_fallback: false,
      max_recipients: 20,
      tenant_daily_send_cap: 5_000,
    });
    expect(facts.addresses).toMatchObject([
      { address: ADDRESS, role: 'primary', status: 'active', domain: { is_platform: true, state: 'healthy' } },
    ]);
  });

  test('name suppressed recipients of this tenant, as long as the entry lasts', async () => {
    const other = tenantRow('other');
    await insertTenant(db, other, auditEntry('tenant.create', other.id));
    await suppressed('for-ever@example.net', null);
    await suppressed('still@example.net', NOW + 1);
    await suppressed('over@example.net', NOW);
    await suppressed('elsewhere@example.net', null, other.id);
    const names = ['for-ever', 'still', 'over', 'elsewhere', 'free'].map((name) => `${name}@example.net`);
    expect((await factsFor(...names)).suppressions).toEqual({
      'for-ever@example.net': 'complaint',
      'still@example.net': 'complaint',
    });
  });

  test('name the entries of the send lists that match an address or its domain', async () => {
    await listed('block', JO);
    await listed('block', '@example.org');
    await listed('block', '@example.com');
    await listed('allow', JO);
    await listed('block', 'kim@example.org', 'receive');
    const facts = await factsFor(JO, 'kim@example.org');
    expect(new Set(facts.send_block)).toEqual(new Set([JO, '@example.org']));
    expect(facts.send_allow).toEqual([JO]);
  });

  test('name recipients of this deployment without their tag, while they receive', async () => {
    expect((await factsFor('desk+tag@agents.example', JO)).local_addresses).toEqual([ADDRESS]);
    await db.batch([statement("UPDATE addresses SET status = 'retiring'")]);
    expect((await factsFor(ADDRESS)).local_addresses).toEqual([ADDRESS]);
    await db.batch([statement("UPDATE addresses SET status = 'retired'")]);
    expect((await factsFor(ADDRESS)).local_addresses).toEqual([]);
  });

  test('of the most recipients that a send may have stay within what the database binds at once', () => {
    const recipients = Array.from({ length: 49 }, (_, n) => ({ address: `r${n}@d${n}.example`, hash: `${n}` }));
    const statements = factsStatements({ identity_id: identity.id, recipients, now: NOW });
    expect(Math.max(...statements.map(({ bindings }) => bindings.length))).toBeLessThanOrEqual(100);
  });

  test('of an identity that is not there are undefined', async () => {
    expect(await readScope(db, 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9T', NOW, DEPLOYMENT)).toBeUndefined();
    expect((await readScope(db, identity.id, NOW, DEPLOYMENT))?.identity.id).toBe(identity.id);
  });
});

describe('an address leads', () => {
  const route = { mailbox_do_id: 'mailbox-desk' };

  test.each([
    ['active', true, true],
    ['retiring', true, true],
    ['retired', true, false],
    ['pending', true, false],
  ])('while %s: back to its sender %s, to who receives %s', async (status, sends, receives) => {
    await db.batch([statement('UPDATE addresses SET status = ?', status)]);
    expect((await routeSender(db, ADDRESS)) !== undefined).toBe(sends);
    expect((await routeRecipient(db, ADDRESS)) !== undefined).toBe(receives);
  });

  test.each([
    ['active', true],
    ['paused', true],
    ['deleting', false],
    ['deleted', false],
  ])('to an identity that is %s: %s', async (status, receives) => {
    await db.batch([statement('UPDATE identities SET status = ?', status)]);
    expect((await routeRecipient(db, ADDRESS)) !== undefined).toBe(receives);
    expect(await routeSender(db, ADDRESS)).toMatchObject(route);
    expect(await routeIdentity(db, identity.id)).toMatchObject(route);
  });

  test('nowhere when nobody has it', async () => {
    expect(await routeSender(db, JO)).toBeUndefined();
    expect(await routeRecipient(db, JO)).toBeUndefined();
  });
});
