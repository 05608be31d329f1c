import { z } from 'zod';
import { billing, patchBillingBody } from '../schemas/billing.ts';
import { patchPolicyBody, policyAnswer } from '../schemas/policy.ts';
import { pagination } from '../schemas/query.ts';
import {
  createTenantBody,
  patchTenantBody,
  TENANT_MODES,
  TENANT_STATUSES,
  tenant,
  tenantPage,
} from '../schemas/tenant.ts';
import { NO_PARAMS, NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Tenants';
const byPlatform = { kind: 'key', permissions: ['tenants:manage'], levels: ['platform'] } as const;

export const tenantRoutes = {
  'tenants.create': route({
    method: 'POST',
    path: '/v1/tenants',
    summary: 'Create a tenant',
    tag,
    access: byPlatform,
    idempotency: 'optional',
    params: NO_PARAMS,
    query: NO_QUERY,
    body: createTenantBody,
    success: [{ status: 201, description: 'The new tenant.', schema: tenant }],
    errors: ['slug_taken', 'suffix_taken'],
  }),
  'tenants.list': route({
    method: 'GET',
    path: '/v1/tenants',
    summary: 'List tenants',
    tag,
    access: byPlatform,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z.strictObject({
      ...pagination,
      status: z.enum(TENANT_STATUSES).optional(),
      mode: z.enum(TENANT_MODES).optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'Newest first.', schema: tenantPage }],
    errors: [],
  }),
  'tenants.get': route({
    method: 'GET',
    path: '/v1/tenants/{tenant_id}',
    summary: 'Read a tenant',
    description: 'A tenant key reads its own tenant.',
    tag,
    access: {
      kind: 'key',
      permissions: ['tenants:manage'],
      levels: ['platform', 'tenant'],
      waivedFor: ['tenant'],
    },
    idempotency: 'none',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The tenant.', schema: tenant }],
    errors: [],
  }),
  'tenants.update': route({
    method: 'PATCH',
    path: '/v1/tenants/{tenant_id}',
    summary: 'Change, suspend or resume a tenant',
    tag,
    access: byPlatform,
    idempotency: 'none',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: patchTenantBody,
    success: [{ status: 200, description: 'The tenant as it is now.', schema: tenant }],
    errors: ['domain_in_use', 'tenant_erased'],
  }),
  'tenants.policy.get': route({
    method: 'GET',
    path: '/v1/tenants/{tenant_id}/policy',
    summary: 'Read the policy of a tenant',
    description: 'The policy in force, and for each field whether the asking key may set it and up to which value.',
    tag,
    access: { kind: 'key', permissions: ['policy:write'], levels: ['platform', 'tenant'] },
    idempotency: 'none',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The policy.', schema: policyAnswer }],
    errors: [],
  }),
  'tenants.policy.update': route({
    method: 'PATCH',
    path: '/v1/tenants/{tenant_id}/policy',
    summary: 'Change the policy of a tenant',
    description:
      'Changes the fields given; null puts a field back to the value of the deployment. A tenant key that goes above ' +
      'a ceiling gets `scope_denied` with the field and its ceiling.',
    tag,
    access: { kind: 'key', permissions: ['policy:write'], levels: ['platform', 'tenant'] },
    idempotency: 'none',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: patchPolicyBody,
    success: [{ status: 200, description: 'The policy as it is now.', schema: policyAnswer }],
    errors: ['domain_in_use', 'tenant_erased'],
  }),
  'tenants.billing.get': route({
    method: 'GET',
    path: '/v1/tenants/{tenant_id}/billing',
    summary: 'Read the billing of a tenant',
    description: 'What is granted. What of it is used stands in the usage of the tenant.',
    tag,
    access: byPlatform,
    idempotency: 'none',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'Mode and allowances.', schema: billing }],
    errors: [],
  }),
  'tenants.billing.update': route({
    method: 'PATCH',
    path: '/v1/tenants/{tenant_id}/billing',
    summary: 'Set mode and allowances of a tenant',
    description:
      'Fields that are missing stay. What is used already stays counted, so an allowance can be set below it. A send ' +
      'that was refused with `billing_limit` may be repeated with its key once the allowance is raised.',
    tag,
    access: byPlatform,
    idempotency: 'none',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: patchBillingBody,
    success: [{ status: 200, description: 'Mode and allowances as they are now.', schema: billing }],
    errors: ['tenant_erased'],
  }),
};
