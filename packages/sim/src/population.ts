import type { AddressId, DomainId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import type { SqlValue } from '@pmail/engine/sql.ts';
import type { Deployment } from './deployment.ts';

export interface SimIdentity {
  tenant_id: TenantId;
  identity_id: IdentityId;
  address: string;
  mode: 'live' | 'test';
}

const PLATFORM = 'dom_00000000000000000000000000' as DomainId;
export const PLATFORM_DOMAIN = 'agents.example';
export const RELAY_DOMAIN = 'relay.example';
export const TAGGING_DOMAIN = 'tagging.example';

type Insert = (table: string, row: Record<string, SqlValue>) => void;

function inserter({ directory }: Deployment): Insert {
  return (table, row) => {
    const names = Object.keys(row);
    const values = names.map(() => '?').join(', ');
    directory.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${values})`, ...Object.values(row));
  };
}

function insertDomain(insert: Insert, id: DomainId, name: string, transport: string, now: number): void {
  const platform = id === PLATFORM;
  insert('domains', {
    id,
    tenant_id: null,
    name,
    kind: platform ? 'platform' : 'external',
    method: platform ? 'platform' : 'send_only',
    is_apex: 1,
    routing_mode: 'catch_all',
    inbound: 'routing',
    transport,
    reply_token: platform ? 'subaddress' : 'none',
    receiving: 1,
    sending: 1,
    state: 'healthy',
    state_changed_at: now,
    created_at: now,
    updated_at: now,
  });
}

/** A tenant to set up. */
export interface SimTenant {
  mode: 'live' | 'test';
  identities: number;
  policy?: PolicyPatch;
  /** Sends it may make in a period, where its use is metered. */
  granted?: number;
}

/** A test tenant and live tenants, each with identities; live ones send by the provider double. */
export function populate(deployment: Deployment, tenants: SimTenant[]): SimIdentity[] {
  const { now } = deployment.universe;
  const insert = inserter(deployment);
  const out: SimIdentity[] = [];
  insertDomain(insert, PLATFORM, PLATFORM_DOMAIN, 'cloudflare', now);
  const relay = deployment.newId('dom', now);
  insertDomain(insert, relay, RELAY_DOMAIN, 'smtp', now);
  const tagging = deployment.newId('dom', now);
  insertDomain(insert, tagging, TAGGING_DOMAIN, 'ses', now);
  const platform = { id: PLATFORM, name: PLATFORM_DOMAIN };
  // The relay knows partial acceptance; SES hands our own id back in its reports.
  const live = [platform, { id: relay, name: RELAY_DOMAIN }, { id: tagging, name: TAGGING_DOMAIN }];
  tenants.forEach(({ mode, identities, policy = {}, granted }, tenantIndex) => {
    const tenantId = deployment.newId('ten', now);
    insert('tenants', {
      id: tenantId,
      slug: `tenant${tenantIndex}`,
      name: `Tenant ${tenantIndex}`,
      mode,
      address_suffix: `.t${tenantIndex}`,
      suffix_fold: `.t${tenantIndex}`,
      timezone: tenantIndex % 2 === 0 ? 'Europe/Berlin' : 'UTC',
      policy_json: JSON.stringify({ max_recipients: 49, ...policy }),
      quota_do_id: tenantId,
      created_at: now,
      updated_at: now,
    });
    deployment.addTenant(tenantId, policy, granted);
    for (let i = 0; i < identities; i++) {
      const identityId = deployment.newId('idn', now);
      const domain = (mode === 'live' ? live[i % live.length] : undefined) ?? platform;
      const address = `agent${i}.t${tenantIndex}@${domain.name}`;
      insert('identities', {
        id: identityId,
        tenant_id: tenantId,
        username: `agent${i}`,
        username_fold: `agent${i}`,
        display_name: `Agent ${i}`,
        owner_name: 'Owner',
        owner_email: 'owner@example.com',
        mailbox_do_id: identityId,
        created_at: now,
        updated_at: now,
      });
      const addressId = deployment.newId('adr', now);
      insertAddress(insert, now, { id: addressId, address, domain: domain.id, tenantId, identityId, role: 'primary' });
      // Who has a domain of their own has an address of the platform too, to fall back to.
      if (domain !== platform) {
        insertAddress(insert, now, {
          id: deployment.newId('adr', now),
          address: `agent${i}.t${tenantIndex}@${PLATFORM_DOMAIN}`,
          domain: PLATFORM,
          tenantId,
          identityId,
          role: 'alias',
        });
      }
      deployment.addIdentity({ tenant_id: tenantId, identity_id: identityId });
      out.push({ tenant_id: tenantId, identity_id: identityId, address, mode });
    }
  });
  return out;
}

function insertAddress(
  insert: Insert,
  now: number,
  row: {
    id: AddressId;
    address: string;
    domain: DomainId;
    tenantId: TenantId;
    identityId: IdentityId;
    role: 'primary' | 'alias';
  },
): void {
  insert('addresses', {
    id: row.id,
    address: row.address,
    local_part: row.address.split('@')[0] ?? '',
    domain_id: row.domain,
    tenant_id: row.tenantId,
    identity_id: row.identityId,
    role: row.role,
    status: 'active',
    created_at: now,
    updated_at: now,
  });
}
