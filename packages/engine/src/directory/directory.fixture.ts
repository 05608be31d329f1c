// The in-memory directory runs in Node, which the engine itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import { createIdFactory } from '@pmail/core/ids.ts';
import { memoryDirectory, nodeDb } from '@pmail/testkit/node-sql.ts';
import { type Db, queryAll, type SqlValue, statement } from '../sql.ts';
import type { AuditEntry } from './audit.ts';
import type { AddressRow, IdentityRow, NewIdentity } from './identities.ts';
import type { TenantRow } from './tenants.ts';

/** An empty directory with the real schema, and rows for it. */

export const NOW = Date.parse('2026-11-30T12:00:00.000Z');

export const newId = createIdFactory(Math.random);

export const PLATFORM_DOMAIN = newId('dom', NOW);

export async function directory(): Promise<Db> {
  const db = nodeDb(memoryDirectory());
  await db.batch([
    statement(
      `INSERT INTO domains (id, tenant_id, name, kind, method, is_apex, routing_mode, inbound, transport, reply_token,
         receiving, sending, state, state_changed_at, created_at, updated_at)
       VALUES (?1, NULL, 'agents.example', 'platform', 'platform', 1, 'catch_all', 'routing', 'cloudflare',
         'subaddress', 1, 1, 'healthy', ?2, ?2, ?2)`,
      PLATFORM_DOMAIN,
      NOW,
    ),
  ]);
  return db;
}

export function rows(db: Db, sql: string, ...bindings: SqlValue[]): Promise<Record<string, SqlValue>[]> {
  return queryAll(db, sql, ...bindings);
}

export function tenantRow(slug: string, changes: Partial<TenantRow> = {}): TenantRow {
  return {
    id: newId('ten', NOW),
    slug,
    name: slug,
    owner_name: null,
    owner_email: null,
    mode: 'live',
    status: 'active',
    suspended_at: null,
    suspended_by: null,
    address_suffix: `.${slug}`,
    suffix_fold: `.${slug}`,
    timezone: 'UTC',
    policy_json: '{}',
    policy_ceilings_json: '{}',
    policy_version: 0,
    billing_mode: 'disabled',
    granted_json: '{}',
    quota_do_id: 'quota',
    created_at: NOW,
    updated_at: NOW,
    ...changes,
  };
}

export function auditEntry(action: string, tenant: TenantRow['id'], at = NOW): AuditEntry {
  return {
    id: newId('aud', at),
    tenant_id: tenant,
    actor_key_id: null,
    action,
    target_type: null,
    target_id: null,
    details: { action },
    request_id: null,
    at,
  };
}

export function identityRow(
  tenant: TenantRow['id'],
  username: string,
  changes: Partial<IdentityRow> = {},
): IdentityRow {
  return {
    id: newId('idn', NOW),
    tenant_id: tenant,
    username,
    username_fold: username,
    display_name: username,
    purpose: null,
    client_id: null,
    client_fingerprint: null,
    owner_name: null,
    owner_email: null,
    signature_text: null,
    signature_html: null,
    status: 'active',
    pause_reason: null,
    send_policy_json: '{}',
    metadata_json: '{}',
    mailbox_do_id: `mailbox-${username}`,
    is_system: 0,
    created_at: NOW,
    updated_at: NOW,
    ...changes,
  };
}

/** An identity with one primary address on the platform domain. */
export function newIdentity(identity: IdentityRow, address = `${identity.username}@agents.example`): NewIdentity {
  const row: AddressRow & { hash: string } = {
    id: newId('adr', NOW),
    address,
    local_part: address.split('@')[0] ?? '',
    domain_id: PLATFORM_DOMAIN,
    tenant_id: identity.tenant_id,
    identity_id: identity.id,
    role: 'primary',
    status: 'active',
    retire_at: null,
    retired_at: null,
    forwarding: null,
    forwarding_checked_at: null,
    created_at: NOW,
    updated_at: NOW,
    hash: `hash of ${address}`,
  };
  return { identity, addresses: [row], audit: auditEntry('identity.create', identity.tenant_id) };
}
