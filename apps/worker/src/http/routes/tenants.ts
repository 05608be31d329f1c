import type { RouteHandler, RouteId, RouteInput } from '@pmail/contracts/routes.ts';
import type { tenant as tenantSchema } from '@pmail/contracts/schemas/tenant.ts';
import { parseAddress } from '@pmail/core/address/address.ts';
import { foldName } from '@pmail/core/address/username.ts';
import type { TenantId } from '@pmail/core/ids.ts';
import { effectivePolicy, type PolicyPatch } from '@pmail/core/policy/document.ts';
import { writePolicy } from '@pmail/core/policy/fields.ts';
import { invalidRequest, ok, type Result, refuse } from '@pmail/core/result.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { readAuditDetails } from '@pmail/engine/directory/audit.ts';
import { policyColumns } from '@pmail/engine/directory/policy.ts';
import {
  billingOf,
  findTenant,
  insertTenant,
  listTenants,
  type MailboxOwner,
  pausedWithTenant,
  resumedWithTenant,
  type TenantRow,
  takenName,
} from '@pmail/engine/directory/tenants.ts';
import type { z } from 'zod';
import { changeId } from '../../change-id.ts';
import { newQuotaId } from '../../objects/new-id.ts';
import { quotaStub } from '../../objects/remote.ts';
import { newId } from '../../ports/random.ts';
import { auditEntry } from '../audit.ts';
import { type RequestContext, tenantCall } from '../context.ts';
import { tellAll } from '../mailbox-events.ts';
import { object } from '../object-call.ts';
import { byCreation, pageOf } from '../page.ts';
import { type Changed, changeUntilCurrent, policyAnswer } from './tenant-change.ts';

type Group = {
  [K in Exclude<Extract<RouteId, `tenants.${string}`>, `tenants.billing.${string}`>]: RouteHandler<K, RequestContext>;
};

/** The only tenant whose platform addresses may have no suffix. */
const DEFAULT_SLUG = 'default';

function tenantResource({ config }: RequestContext, row: TenantRow): z.input<typeof tenantSchema> {
  const policy = effectivePolicy(config.deployment.default_policy, JSON.parse(row.policy_json) as PolicyPatch);
  return {
    id: row.id,
    slug: row.slug,
    name: row.name,
    mode: row.mode,
    status: row.status,
    suspended_by: row.suspended_by,
    address_suffix: row.address_suffix,
    timezone: row.timezone,
    policy,
    owner: row.owner_email === null ? null : { name: row.owner_name, email: row.owner_email },
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}

type Owner = NonNullable<RouteInput<'tenants.create'>['body']['owner']>;

function ownerColumns(owner: Owner | null | undefined): Pick<TenantRow, 'owner_name' | 'owner_email'> {
  if (owner === null || owner === undefined) return { owner_name: null, owner_email: null };
  const parsed = parseAddress(owner.email);
  return { owner_name: owner.name ?? null, owner_email: parsed.ok ? parsed.address : owner.email };
}

type CreateBody = RouteInput<'tenants.create'>['body'];

function newTenant(context: RequestContext, body: CreateBody): Result<TenantRow> {
  const suffix = body.address_suffix ?? `.${body.slug}`;
  if (suffix === '' && body.slug !== DEFAULT_SLUG) {
    return invalidRequest({ path: 'address_suffix', message: `must not be empty unless the slug is ${DEFAULT_SLUG}` });
  }
  const { default_policy } = context.config.deployment;
  const policy = writePolicy(default_policy, { patch: {}, ceilings: {} }, body.policy ?? {}, 'platform');
  if (!policy.ok) return policy;
  return ok({
    ...ownerColumns(body.owner),
    ...policyColumns(policy.value),
    id: newId('ten', context.now),
    slug: body.slug,
    name: body.name,
    mode: body.mode,
    status: 'active',
    suspended_at: null,
    suspended_by: null,
    address_suffix: suffix,
    suffix_fold: foldName(suffix),
    timezone: body.timezone ?? 'UTC',
    policy_version: 0,
    billing_mode: body.billing?.mode ?? 'disabled',
    granted_json: '{}',
    quota_do_id: '',
    created_at: context.now,
    updated_at: context.now,
  });
}

/**
 * Makes the quota of a tenant that is about to be added. It comes first: a tenant without a working quota could not
 * send, whereas a quota whose tenant was then refused is only an object that nobody names.
 */
async function makeQuota(context: RequestContext, row: TenantRow): Promise<string> {
  const id = newQuotaId(context.env);
  const quota = quotaStub(context.env, id);
  await object(quota.init(row.id));
  await object(quota.takeBilling(tenantCall(context, row), billingOf(row)));
  return id;
}

/** Tells the mailboxes of what the tenant's new status did to their identities. */
function tellStatus(context: RequestContext, row: TenantRow, affected: MailboxOwner[]): Promise<boolean> {
  return row.status === 'suspended'
    ? tellAll(context, row.id, 'identity.paused', row.suspended_at ?? row.updated_at, affected)
    : tellAll(context, row.id, 'identity.resumed', row.updated_at, affected);
}

/**
 * Whom a request is about that asks for the status which the tenant has. It may repeat one whose events were lost, and
 * then tells them again: all identities under the suspension, or those of a resumption that was the last change.
 */
async function affectedBefore(context: RequestContext, row: TenantRow): Promise<MailboxOwner[]> {
  if (row.status === 'suspended') return pausedWithTenant(context.db, row.id);
  const audit = await changeId(context.config, 'aud', 'tenant.resume', row.id, row.updated_at);
  const resumed = (await readAuditDetails(context.db, [audit])).has(audit);
  return resumed ? resumedWithTenant(context.db, row.id, row.updated_at) : [];
}

async function tenantAnswer(
  context: RequestContext,
  changed: Changed,
  askedStatus: boolean,
): Promise<Result<{ status: 200; body: z.input<typeof tenantSchema> }>> {
  const { row, affected } = changed;
  const owners = affected ?? (askedStatus ? await affectedBefore(context, row) : []);
  const told = await tellStatus(context, row, owners);
  // The change stands; the same request once more finds it done and tells them all again.
  if (!told) return refuse('unavailable', { step: 'mailbox' });
  return ok({ status: 200, body: tenantResource(context, row) });
}

export const tenantHandlers: Group = {
  'tenants.create': async (context, { body }) => {
    const planned = newTenant(context, body);
    if (!planned.ok) return planned;
    const { value: row } = planned;
    const taken = await takenName(context.db, row);
    if (taken !== null) return refuse(taken);
    row.quota_do_id = await makeQuota(context, row);
    const target = { tenant_id: row.id, target_type: 'tenant', target_id: row.id };
    const details = { slug: row.slug, mode: row.mode, billing: row.billing_mode };
    const outcome = await insertTenant(context.db, row, auditEntry(context, 'tenant.create', target, details));
    if (outcome !== 'created') return refuse(outcome);
    return ok({ status: 201 as const, body: tenantResource(context, row) });
  },

  'tenants.list': async (context, input) => {
    return pageOf(context, 'tenants.list', input, {
      read: (limit, after) => listTenants(context.db, input.query, limit, after),
      position: byCreation,
      show: (rows) => rows.map((row) => tenantResource(context, row)),
    });
  },

  'tenants.get': async (context, { params }) => {
    const row = await findTenant(context.db, params.tenant_id as TenantId);
    if (row === undefined) return refuse('tenant_not_found');
    return ok({ status: 200 as const, body: tenantResource(context, row) });
  },

  'tenants.update': async (context, { params, body }) => {
    const { owner, policy, ...columns } = body;
    const set = owner === undefined ? columns : { ...columns, ...ownerColumns(owner) };
    const changed = await changeUntilCurrent(context, params.tenant_id as TenantId, { set, policy });
    return changed.ok ? tenantAnswer(context, changed.value, body.status !== undefined) : changed;
  },

  'tenants.policy.get': async (context, { params }) => {
    const row = await findTenant(context.db, params.tenant_id as TenantId);
    if (row === undefined) return refuse('tenant_not_found');
    return ok({ status: 200 as const, body: policyAnswer(context, row) });
  },

  'tenants.policy.update': async (context, { params, body }) => {
    const changed = await changeUntilCurrent(context, params.tenant_id as TenantId, { set: {}, policy: body.policy });
    return changed.ok ? ok({ status: 200 as const, body: policyAnswer(context, changed.value.row) }) : changed;
  },
};
