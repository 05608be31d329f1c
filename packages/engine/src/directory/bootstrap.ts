import { foldName } from '@pmail/core/address/username.ts';
import type { AddressId, DomainId, Id, IdentityId, IdFactory, KeyId, TenantId } from '@pmail/core/ids.ts';
import { type Statement, statement } from '../sql.ts';
import { auditStatement } from './audit.ts';
import { insertKeyStatement } from './keys.ts';

export interface BootstrapIds {
  tenant: TenantId;
  domain: DomainId;
  identity: IdentityId;
  address: AddressId;
  key: KeyId;
  audit: Id<'aud'>;
}

export function bootstrapIds(id: IdFactory, now: number): BootstrapIds {
  return {
    tenant: id('ten', now),
    domain: id('dom', now),
    identity: id('idn', now),
    address: id('adr', now),
    key: id('key', now),
    audit: id('aud', now),
  };
}

/**
 * The operator's word that the platform domain can send. Until the service watches domains itself, nobody else could say
 * so. A domain that is past its verification stays as it is, and so does the audit log.
 */
export function platformDomainReadyStatements(name: string, audit: Id<'aud'>, now: number): Statement[] {
  const waiting = statement(
    `FROM domains WHERE kind = 'platform' AND name = ? AND state IN ('pending', 'verifying')`,
    name,
  );
  return [
    auditStatement(
      {
        id: audit,
        tenant_id: null,
        actor_key_id: null,
        action: 'platform.domain_ready',
        target_type: null,
        target_id: null,
        details: { domain: name },
        request_id: null,
        at: now,
      },
      statement(`EXISTS (SELECT 1 ${waiting.sql})`, ...waiting.bindings),
    ),
    statement(
      `UPDATE domains SET state = 'healthy', state_reason = NULL, state_changed_at = ?, updated_at = ?
       WHERE id IN (SELECT id ${waiting.sql})`,
      now,
      now,
      ...waiting.bindings,
    ),
  ];
}

export interface Bootstrap {
  ids: BootstrapIds;
  platform_domain: string;
  /** Display name and local part of the deployment's own sender. */
  system: { name: string; local_part: string; owner_email: string };
  /** A local run has nobody to verify its domain, so it begins as healthy. */
  domain_state: 'pending' | 'healthy';
  key: { lookup: string; hash: string; permissions: readonly string[]; expires_at: number | null };
  now: number;
}

/** The system identity's own daily cap; the tenant's does not count for it. */
const SYSTEM_DAILY_CAP = 50_000;

/**
 * The first rows of a deployment: the default tenant, the platform domain, the system identity and one platform key.
 * Object ids are left empty; only the Worker can make them, and its cron fills them in.
 */
export function bootstrapStatements(input: Bootstrap): Statement[] {
  const { ids, now, system, platform_domain: domain } = input;
  const address = `${system.local_part}@${domain}`;
  return [
    statement(
      `INSERT INTO tenants (id, slug, name, mode, address_suffix, suffix_fold, quota_do_id, created_at, updated_at)
       VALUES (?, 'default', 'Default', 'live', '', '', '', ?, ?)`,
      ids.tenant,
      now,
      now,
    ),
    statement(
      `INSERT INTO domains (id, tenant_id, name, kind, method, is_apex, routing_mode, inbound, transport, reply_token,
         receiving, sending, state, state_changed_at, created_at, updated_at)
       VALUES (?, NULL, ?, 'platform', 'platform', 1, 'catch_all', 'routing', 'cloudflare', 'subaddress', 1, 1, ?, ?, ?, ?)`,
      ids.domain,
      domain,
      input.domain_state,
      now,
      now,
      now,
    ),
    statement(
      `INSERT INTO identities (id, tenant_id, username, username_fold, display_name, owner_name, owner_email,
         send_policy_json, mailbox_do_id, is_system, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, 'Operator', ?, ?, '', 1, ?, ?)`,
      ids.identity,
      ids.tenant,
      system.local_part,
      foldName(system.local_part),
      system.name,
      system.owner_email,
      JSON.stringify({ daily_cap: SYSTEM_DAILY_CAP }),
      now,
      now,
    ),
    statement(
      `INSERT INTO addresses (id, address, local_part, domain_id, tenant_id, identity_id, role, status, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, 'primary', 'active', ?, ?)`,
      ids.address,
      address,
      system.local_part,
      ids.domain,
      ids.tenant,
      ids.identity,
      now,
      now,
    ),
    insertKeyStatement({
      id: ids.key,
      lookup: input.key.lookup,
      hash: input.key.hash,
      prev_hash: null,
      prev_expires_at: null,
      name: 'First platform key',
      level: 'platform',
      tenant_id: null,
      identity_id: null,
      mode: 'live',
      permissions_json: JSON.stringify(input.key.permissions),
      created_by_key_id: null,
      expires_at: input.key.expires_at,
      revoked_at: null,
      last_used_at: null,
      created_at: now,
    }),
    auditStatement({
      id: ids.audit,
      tenant_id: null,
      actor_key_id: null,
      action: 'platform.bootstrap',
      target_type: 'key',
      target_id: ids.key,
      details: null,
      request_id: null,
      at: now,
    }),
  ];
}
