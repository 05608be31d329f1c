import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { day, idInput } from '../schemas/common.ts';
import { dailyUsage, usage } from '../schemas/usage.ts';
import { NO_PARAMS } from './params.ts';
import { route } from './spec.ts';

const tag = 'Usage';
const access = { kind: 'key', permissions: ['usage:read'], waivedFor: ['tenant', 'identity'] } as const;
const tenantId = idInput('ten', 'Required from platform keys; others see their own tenant.').optional();

export const usageRoutes = {
  'usage.get': route({
    method: 'GET',
    path: '/v1/usage',
    summary: 'Allowances and what is used of them',
    tag,
    access,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z.strictObject({ tenant_id: tenantId }),
    body: null,
    success: [{ status: 200, description: 'The current period.', schema: usage }],
    errors: ['tenant_not_found'],
  }),
  'usage.daily': route({
    method: 'GET',
    path: '/v1/usage/daily',
    summary: 'Usage day by day',
    tag,
    access,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z
      .strictObject({
        tenant_id: tenantId,
        from: day.optional().meta({ description: 'First day. Default: thirty days up to `to`.' }),
        to: day.optional().meta({ description: 'Last day. Default: today.' }),
      })
      .superRefine(({ from, to }, context) => {
        if (from === undefined || to === undefined) return;
        const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1;
        const add = (message: string): void => context.addIssue({ code: 'custom', message, path: ['from'] });
        if (days < 1) add('must not be after to');
        if (days > BOUNDS.usage_days_max) add(`must leave at most ${BOUNDS.usage_days_max} days up to to`);
      }),
    body: null,
    success: [{ status: 200, description: 'One entry per UTC day.', schema: dailyUsage }],
    errors: ['tenant_not_found'],
  }),
};
