import { z } from 'zod';
import { addressParam, pagination } from '../schemas/query.ts';
import {
  createSuppressionBody,
  deleteSuppressionBody,
  SUPPRESSION_REASONS,
  suppression,
  suppressionPage,
} from '../schemas/suppression.ts';
import { NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Suppressions';
const access = { kind: 'key', permissions: ['suppressions:manage'], levels: ['platform', 'tenant'] } as const;

export const suppressionRoutes = {
  'suppressions.list': route({
    method: 'GET',
    path: '/v1/tenants/{tenant_id}/suppressions',
    summary: 'List suppressions',
    description: 'Addresses themselves are not kept; `address` finds whether one is suppressed.',
    tag,
    access,
    idempotency: 'none',
    params: params('tenant_id'),
    query: z.strictObject({
      ...pagination,
      address: addressParam('Only this address, in any spelling.').optional(),
      reason: z.enum(SUPPRESSION_REASONS).optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'Newest first.', schema: suppressionPage }],
    errors: [],
  }),
  'suppressions.create': route({
    method: 'POST',
    path: '/v1/tenants/{tenant_id}/suppressions',
    summary: 'Suppress an address',
    description:
      'From the next send on the tenant writes to it no more. One suppressed for good already stays as it is; one whose suppression would end by itself gets this one instead.',
    tag,
    access,
    idempotency: 'optional',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: createSuppressionBody,
    success: [
      { status: 201, description: 'The new suppression.', schema: suppression },
      { status: 200, description: 'The suppression that was there.', schema: suppression },
    ],
    errors: [],
  }),
  'suppressions.delete': route({
    method: 'DELETE',
    path: '/v1/tenants/{tenant_id}/suppressions/{address}',
    summary: 'Let an address have mail again',
    description: 'After a complaint only with `confirm_complaint_removal`.',
    tag,
    access,
    idempotency: 'none',
    params: params('tenant_id', 'address'),
    query: NO_QUERY,
    body: deleteSuppressionBody,
    success: [{ status: 204, description: 'The suppression is gone.', schema: null }],
    errors: [],
  }),
};
