import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import type { billing as billingSchema } from '@pmail/contracts/schemas/billing.ts';
import type { TenantId } from '@pmail/core/ids.ts';
import { ok, refuse } from '@pmail/core/result.ts';
import { billingOf, findTenant, type TenantRow } from '@pmail/engine/directory/tenants.ts';
import type { z } from 'zod';
import { errorPlace } from '../../log.ts';
import { quotaOf, type RequestContext, tenantCall } from '../context.ts';
import { object } from '../object-call.ts';
import { changeUntilCurrent } from './tenant-change.ts';

type Group = { [K in Extract<RouteId, `tenants.billing.${string}`>]: RouteHandler<K, RequestContext> };

function billingResource(row: TenantRow): z.input<typeof billingSchema> {
  const { mode, granted } = billingOf(row);
  const { inboxes = null, sends = null, custom_domains = null, storage_gb = null } = granted;
  return { mode, granted: { inboxes, sends, custom_domains, storage_gb } };
}

/**
 * Tells the quota what the row grants. Whatever order two changes arrive in, the later one stays, and one that is lost
 * comes with the next request or roll-up.
 */
async function tellQuota(context: RequestContext, row: TenantRow): Promise<boolean> {
  try {
    await object(quotaOf(context, context.tenant).takeBilling(tenantCall(context, row), billingOf(row)));
    return true;
  } catch (error) {
    context.log('warn', 'quota_not_told', { tenant_id: row.id, error: errorPlace(error) });
    return false;
  }
}

export const billingHandlers: Group = {
  'tenants.billing.get': async (context, { params }) => {
    const row = await findTenant(context.db, params.tenant_id as TenantId);
    if (row === undefined) return refuse('tenant_not_found');
    return ok({ status: 200 as const, body: billingResource(row) });
  },

  'tenants.billing.update': async (context, { params, body }) => {
    // The quota of a tenant that the setup added takes a minute to be made.
    if (context.tenant.quota_do_id === '') return refuse('unavailable', { step: 'quota' });
    const changed = await changeUntilCurrent(context, params.tenant_id as TenantId, { set: {}, billing: body });
    if (!changed.ok) return changed;
    const { row } = changed.value;
    // The change stands; the same request once more finds it done and tells the quota.
    if (!(await tellQuota(context, row))) return refuse('unavailable', { step: 'quota' });
    return ok({ status: 200 as const, body: billingResource(row) });
  },
};
