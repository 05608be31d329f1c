import type { AddressId, DomainId, IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import type { SqlValue } from '@pmail/engine/sql.ts';
import type { Deployment } from './deployment.ts';
import { START } from './universe.ts';

export interface SimIdentity {
  tenant_id: TenantId;
  identity_id: IdentityId;
  address: string;
  mode: 'live' | 'test';
}

const PLATFORM = 'dom_00000000000000000000000000' as DomainId;

function insert(deployment: Deployment, table: string, row: Record<string, SqlValue>): void {
  const names = Object.keys(row);
  deployment.directory
    .prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`)
    .run(...Object.values(row));
}

function insertDomain(deployment: Deployment, id: DomainId, name: string, transport: string): void {
  const platform = id === PLATFORM;
  insert(deployment, 'domains', {
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
    state_changed_at: START,
    created_at: START,
    updated_at: START,
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
  insertDomain(deployment, PLATFORM, 'agents.example', 'cloudflare');
  const relay = deployment.newId('dom', START);
  insertDomain(deployment, relay, 'relay.example', 'smtp');
  const tagging = deployment.newId('dom', START);
  insertDomain(deployment, tagging, 'tagging.example', 'ses');
  // The relay knows partial acceptance; SES hands our own id back in its reports.
  const live = [
    { id: PLATFORM, name: 'agents.example' },
    { id: relay, name: 'relay.example' },
    { id: tagging, name: 'tagging.example' },
  ] as const;
  const out: SimIdentity[] = [];
  tenants.forEach(({ mode, identities, policy = {}, granted }, tenantIndex) => {
    const tenantId = deployment.newId('ten', START);
    insert(deployment, 'tenants', {
      id: tenantId,
      slug: `tenant${tenantIndex}`,
      name: `Tenant ${tenantIndex}`,
      mode,
      address_suffix: `.t${tenantIndex}`,
      suffix_fold: `.t${tenantIndex}`,
      timezone: tenantIndex % 2 === 0 ? 'Europe/Berlin' : 'UTC',
      policy_json: JSON.stringify({ max_recipients: 49, ...policy }),
      quota_do_id: tenantId,
      created_at: START,
      updated_at: START,
    });
    deployment.addTenant(tenantId, policy, granted);
    for (let i = 0; i < identities; i++) {
      const identityId = deployment.newId('idn', START);
      const domain = live[mode === 'live' ? i % live.length : 0] ?? live[0];
      const address = `agent${i}.t${tenantIndex}@${domain.name}`;
      insert(deployment, 'identities', {
        id: identityId,
        tenant_id: tenantId,
        username: `agent${i}`,
        username_fold: `agent${i}`,
        display_name: `Agent ${i}`,
        owner_name: 'Owner',
        owner_email: 'owner@example.com',
        mailbox_do_id: identityId,
        created_at: START,
        updated_at: START,
      });
      insertAddress(deployment, {
        id: deployment.newId('adr', START),
        address,
        domain: domain.id,
        tenantId,
        identityId,
      });
      deployment.addIdentity({ tenant_id: tenantId, identity_id: identityId });
      out.push({ tenant_id: tenantId, identity_id: identityId, address, mode });
    }
  });
  return out;
}

function insertAddress(
  deployment: Deployment,
  row: { id: AddressId; address: string; domain: DomainId; tenantId: TenantId; identityId: IdentityId },
): void {
  insert(deployment, 'addresses', {
    id: row.id,
    address: row.address,
    local_part: row.address.split('@')[0] ?? '',
    domain_id: row.domain,
    tenant_id: row.tenantId,
    identity_id: row.identityId,
    role: 'primary',
    status: 'active',
    created_at: START,
    updated_at: START,
  });
}
