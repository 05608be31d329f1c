import type { identity as identitySchema } from '@pmail/contracts/schemas/identity.ts';
import { effectivePolicy, type PolicyPatch } from '@pmail/core/policy/document.ts';
import type { IdentityFacts } from '@pmail/core/policy/types.ts';
import { rfc3339, rfc3339OrNull } from '@pmail/core/time.ts';
import type { AddressRow, IdentityRecord } from '@pmail/engine/directory/identities.ts';
import type { z } from 'zod';
import type { RequestContext } from '../context.ts';

export type IdentityResource = z.input<typeof identitySchema>;
export type AddressResource = IdentityResource['addresses'][number];

/** What an identity narrows of its tenant's policy, as stored. */
export type SendPolicy = IdentityFacts['send_policy'];

export function sendPolicyOf(row: Pick<IdentityRecord, 'send_policy_json'>): SendPolicy {
  return JSON.parse(row.send_policy_json) as SendPolicy;
}

/** The cap of the tenant's policy for each of its identities. */
export function policyCap({ config }: Pick<RequestContext, 'config'>, tenantPolicyJson: string): number {
  const own = JSON.parse(tenantPolicyJson) as PolicyPatch;
  return effectivePolicy(config.deployment.default_policy, own).identity_daily_send_cap;
}

export function identityResource(context: Pick<RequestContext, 'config'>, row: IdentityRecord): IdentityResource {
  const { daily_cap, auto_reply, require_known_recipient } = sendPolicyOf(row);
  const primary = row.addresses.find(({ role }) => role === 'primary');
  return {
    id: row.id,
    tenant_id: row.tenant_id,
    username: row.username,
    display_name: row.display_name,
    purpose: row.purpose,
    status: row.status,
    pause_reason: row.pause_reason,
    // One on its way out has lost its addresses.
    primary_address: primary?.address ?? '',
    addresses: row.addresses.map(addressResource),
    owner: row.owner_email === null ? null : { name: row.owner_name ?? '', email: row.owner_email },
    signature: { text: row.signature_text, html: row.signature_html },
    send_policy: {
      daily_cap: daily_cap ?? policyCap(context, row.tenant_policy_json),
      auto_reply: auto_reply ?? 'allowed',
      require_known_recipient: require_known_recipient ?? false,
    },
    metadata: JSON.parse(row.metadata_json) as Record<string, string>,
    client_id: row.client_id,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}

export function addressResource(row: AddressRow): AddressResource {
  return {
    id: row.id,
    identity_id: row.identity_id,
    address: row.address,
    local_part: row.local_part,
    domain_id: row.domain_id,
    role: row.role,
    status: row.status,
    retire_at: rfc3339OrNull(row.retire_at),
    retired_at: rfc3339OrNull(row.retired_at),
    forwarding: row.forwarding,
    forwarding_checked_at: rfc3339OrNull(row.forwarding_checked_at),
    created_at: rfc3339(row.created_at),
  };
}
