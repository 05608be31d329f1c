import { BOUNDS } from '@pmail/contracts/bounds.ts';
import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import { parseId } from '@pmail/core/ids.ts';
import { invalidRequest, ok, type Result, refuse } from '@pmail/core/result.ts';
import { rfc3339, rfc3339OrNull, utcDay } from '@pmail/core/time.ts';
import { type TenantRef, tenantStatement } from '@pmail/engine/directory/owners.ts';
import { readUsageDays } from '@pmail/engine/directory/usage.ts';
import { USAGE_METRICS } from '@pmail/engine/quota/types.ts';
import { queryFirst } from '@pmail/engine/sql.ts';
import { quotaOf, type RequestContext, reachesTenant, tenantCall } from '../context.ts';
import { object } from '../object-call.ts';

type Group = { [K in Extract<RouteId, `usage.${string}`>]: RouteHandler<K, RequestContext> };

const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 30;

/** The tenant a query is about: the key's own, or the one that a platform key names. */
async function tenantOf(context: RequestContext, given: string | undefined): Promise<Result<TenantRef>> {
  const wanted = given ?? context.key.tenant_id;
  if (wanted === null) return invalidRequest({ path: 'tenant_id', message: 'is required from a platform key' });
  const id = parseId('ten', wanted);
  if (id === undefined || !reachesTenant(context.key, id)) return refuse('tenant_not_found');
  const { sql, bindings } = tenantStatement(id);
  const tenant = await queryFirst<TenantRef>(context.db, sql, ...bindings);
  return tenant === undefined ? refuse('tenant_not_found') : ok(tenant);
}

/** First and last day, both given or filled in; the schema has checked them where both were given. */
function rangeOf(
  now: number,
  from: string | undefined,
  to: string | undefined,
): Result<{ first: number; last: number }> {
  const last = Date.parse(to ?? utcDay(now));
  const first = from === undefined ? last - (DAYS_DEFAULT - 1) * DAY_MS : Date.parse(from);
  const days = (last - first) / DAY_MS + 1;
  if (days < 1) return invalidRequest({ path: 'from', message: 'must not be after to' });
  if (days > BOUNDS.usage_days_max) {
    return invalidRequest({ path: 'from', message: `must leave at most ${BOUNDS.usage_days_max} days up to to` });
  }
  return ok({ first, last });
}

export const usageHandlers: Group = {
  'usage.get': async (context, { query }) => {
    const tenant = await tenantOf(context, query.tenant_id);
    if (!tenant.ok) return tenant;
    // The quota of a tenant that the setup added takes a minute to be made.
    if (tenant.value.quota_do_id === '') return refuse('unavailable', { step: 'quota' });
    const answer = await object(quotaOf(context, tenant.value).usage(tenantCall(context, tenant.value)));
    return ok({
      status: 200 as const,
      body: {
        billing: answer.billing,
        period_start: rfc3339(answer.period_start),
        period_end: rfc3339(answer.period_end),
        features: answer.features.map((feature) => ({ ...feature, resets_at: rfc3339OrNull(feature.resets_at) })),
      },
    });
  },

  'usage.daily': async (context, { query }) => {
    const tenant = await tenantOf(context, query.tenant_id);
    if (!tenant.ok) return tenant;
    const range = rangeOf(context.now, query.from, query.to);
    if (!range.ok) return range;
    const { first, last } = range.value;
    const rows = await readUsageDays(context.db, tenant.value.id, utcDay(first), utcDay(last));
    const values = new Map(rows.map(({ day, metric, value }) => [`${day} ${metric}`, value]));
    const data = Array.from({ length: (last - first) / DAY_MS + 1 }, (_, index) => {
      const day = utcDay(first + index * DAY_MS);
      const [inbound = 0, outbound = 0, sends = 0, storage = 0] = USAGE_METRICS.map((metric) =>
        values.get(`${day} ${metric}`),
      );
      return { day, inbound, outbound, sends, storage_bytes: storage };
    });
    return ok({ status: 200 as const, body: { data } });
  },
};
