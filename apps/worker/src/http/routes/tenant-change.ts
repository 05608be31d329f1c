import type { policyAnswer as policySchema } from '@pmail/contracts/schemas/policy.ts';
import { EVENT_API_VERSION, type EventEnvelope } from '@pmail/core/events/types.ts';
import type { TenantId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { effectivePolicy, type PolicyPatch } from '@pmail/core/policy/document.ts';
import {
  fieldAccess,
  type PolicyField,
  type PolicyWrite,
  type PolicyWriter,
  withoutZone,
  writePolicy,
} from '@pmail/core/policy/fields.ts';
import { ok, type Refusal, type Result, refuse } from '@pmail/core/result.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import type { AuditEntry } from '@pmail/engine/directory/audit.ts';
import { listZoneDomains, policyColumns, readStoredPolicy } from '@pmail/engine/directory/policy.ts';
import {
  billingOf,
  changeTenant,
  findTenant,
  grantedColumn,
  type MailboxOwner,
  type TenantChange,
  type TenantRow,
} from '@pmail/engine/directory/tenants.ts';
import type { BillingMode, Granted } from '@pmail/engine/quota/types.ts';
import type { z } from 'zod';
import { changeId } from '../../change-id.ts';
import { newId } from '../../ports/random.ts';
import type { RequestContext } from '../context.ts';

/** What a request wants of a tenant. Fields that are missing stay. */
export interface WantedChange {
  set: {
    name?: string | undefined;
    timezone?: string | undefined;
    owner_name?: string | null | undefined;
    owner_email?: string | null | undefined;
    status?: 'active' | 'suspended' | undefined;
  };
  policy?: PolicyPatch | null | undefined;
  billing?: { mode?: BillingMode | undefined; granted?: Granted | undefined } | undefined;
}

export interface Changed {
  row: TenantRow;
  /** Identities whose status changed with the tenant's; null when the request changed no status. */
  affected: MailboxOwner[] | null;
}

/**
 * Applies a change to the tenant as it is at that moment. When somebody else changes the tenant in between, the change
 * is worked out again on what is there then, a few times.
 */
export async function changeUntilCurrent(
  context: RequestContext,
  id: TenantId,
  wanted: WantedChange,
): Promise<Result<Changed>> {
  for (let attempt = 1; attempt <= LIMITS.directory_write_attempts_max; attempt++) {
    const seen = await findTenant(context.db, id);
    if (seen === undefined) return refuse('tenant_not_found');
    if (seen.status === 'erasing' || seen.status === 'erased') return refuse('tenant_erased');
    const planned = await plan(context, seen, wanted);
    if (!planned.ok) return planned;
    const { value: change } = planned;
    if (change === null) return ok({ row: seen, affected: null });
    const affected = await changeTenant(context.db, change);
    if (affected === undefined) continue;
    const { next } = change;
    return ok({ row: next, affected: next.status === seen.status ? null : affected });
  }
  return refuse('unavailable', { step: 'directory' });
}

/** The change of a tenant that was just read, or null when nothing about it would be different. */
async function plan(
  context: RequestContext,
  seen: TenantRow,
  wanted: WantedChange,
): Promise<Result<TenantChange | null>> {
  const written = await planPolicy(context, seen, wanted.policy ?? {});
  if (!written.ok) return written;
  const { fields } = written.value;
  const columns = given(wanted.set);
  const differing = Object.keys(columns).filter((name) => columns[name] !== seen[name as keyof TenantRow]);
  const billing = planBilling(seen, wanted.billing ?? {});
  if (differing.length === 0 && fields.length === 0 && billing === null) return ok(null);

  const at = Math.max(context.now, seen.updated_at + 1);
  const next: TenantRow = { ...seen, ...(columns as Partial<TenantRow>), updated_at: at };
  if (next.status !== seen.status) {
    const suspends = next.status === 'suspended';
    Object.assign(next, { suspended_at: suspends ? at : null, suspended_by: suspends ? 'platform' : null });
  }
  const audits: AuditEntry[] = [];
  const attributes = differing.filter((name) => name !== 'status');
  if (attributes.length > 0) audits.push(await audit(context, next, 'tenant.update', { changed: attributes }));
  if (next.status !== seen.status) {
    audits.push(await audit(context, next, next.status === 'suspended' ? 'tenant.suspend' : 'tenant.resume', null));
  }
  if (billing !== null) {
    Object.assign(next, billing);
    const { mode, granted } = billingOf(next);
    audits.push(await audit(context, next, 'tenant.billing_update', { mode, granted }));
  }
  if (fields.length === 0) return ok({ seen, next, audits, event: null });
  Object.assign(next, policyColumns(written.value), { policy_version: seen.policy_version + 1 });
  audits.push(await audit(context, next, 'tenant.policy_update', { fields, policy_version: next.policy_version }));
  return ok({ seen, next, audits, event: policyEvent(context, next, fields) });
}

function given(set: WantedChange['set']): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(set).filter((entry): entry is [string, string | null] => entry[1] !== undefined),
  );
}

/** The columns that a change of billing sets, or null when they are so already. */
function planBilling(
  seen: TenantRow,
  { mode, granted = {} }: NonNullable<WantedChange['billing']>,
): Pick<TenantRow, 'billing_mode' | 'granted_json'> | null {
  const before = billingOf(seen);
  const billing = {
    billing_mode: mode ?? before.mode,
    granted_json: grantedColumn({ ...before.granted, ...granted }),
  };
  const same = billing.billing_mode === seen.billing_mode && billing.granted_json === seen.granted_json;
  return same ? null : billing;
}

async function planPolicy(context: RequestContext, seen: TenantRow, patch: PolicyPatch): Promise<Result<PolicyWrite>> {
  const { default_policy } = context.config.deployment;
  const written = writePolicy(default_policy, readStoredPolicy(seen), patch, writerOf(context));
  if (!written.ok || !written.value.fields.includes('domains.cloudflare_zones')) return written;
  const refused = await checkZones(context, seen, written.value.patch);
  return refused ?? written;
}

/** A zone cannot be taken from a tenant while domains of the tenant live in it. */
async function checkZones(context: RequestContext, seen: TenantRow, patch: PolicyPatch): Promise<Refusal | null> {
  const zonesOf = (own: PolicyPatch): string[] =>
    effectivePolicy(context.config.deployment.default_policy, own).domains.cloudflare_zones;
  const domains = await listZoneDomains(context.db, seen.id);
  const lost = withoutZone(domains, zonesOf(readStoredPolicy(seen).patch), zonesOf(patch));
  if (lost.length === 0) return null;
  return refuse('domain_in_use', { reason: 'zone_has_domains', domain_ids: lost.map(({ id }) => id) });
}

function writerOf({ key }: RequestContext): PolicyWriter {
  return key.level === 'platform' ? 'platform' : 'tenant';
}

async function audit(
  context: RequestContext,
  { id, updated_at: at }: TenantRow,
  action: string,
  details: AuditEntry['details'],
): Promise<AuditEntry> {
  return {
    id: await changeId(context.config, 'aud', action, id, at),
    tenant_id: id,
    actor_key_id: context.key.id,
    action,
    target_type: 'tenant',
    target_id: id,
    details,
    request_id: context.requestId,
    at,
  };
}

function policyEvent(context: RequestContext, next: TenantRow, fields: PolicyField[]): EventEnvelope {
  return {
    id: newId('evt', next.updated_at),
    type: 'tenant.policy_updated',
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(next.updated_at),
    tenant_id: next.id,
    identity_id: null,
    sequence: null,
    data: { fields, by: writerOf(context), actor_key_id: context.key.id, policy_version: next.policy_version },
  };
}

/** The policy in force, and what the asking key may do with each field. */
export function policyAnswer(context: RequestContext, row: TenantRow): z.input<typeof policySchema> {
  const { default_policy } = context.config.deployment;
  const { patch, ceilings } = readStoredPolicy(row);
  return {
    tenant_id: row.id,
    policy_version: row.policy_version,
    policy: effectivePolicy(default_policy, patch),
    fields: fieldAccess(default_policy, ceilings, writerOf(context)),
  };
}
