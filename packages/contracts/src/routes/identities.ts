import { z } from 'zod';
import { idInput } from '../schemas/common.ts';
import {
  addressPage,
  createIdentityBody,
  IDENTITY_STATUSES,
  identity,
  identityPage,
  patchIdentityBody,
} from '../schemas/identity.ts';
import { pagination } from '../schemas/query.ts';
import { NO_PARAMS, NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Identities';
const read = { kind: 'key', permissions: ['identities:read'] } as const;

const filters = {
  ...pagination,
  status: z.enum(IDENTITY_STATUSES).optional(),
  purpose: z.string().optional().meta({ description: 'Exact.' }),
  client_id: z.string().optional().meta({ description: 'Exact.' }),
};

export const identityRoutes = {
  'identities.create': route({
    method: 'POST',
    path: '/v1/tenants/{tenant_id}/identities',
    summary: 'Create an identity',
    description:
      'An identity is a mailbox with an address on the platform domain and, with `domain_id`, one on that domain. ' +
      'Give a `client_id` to make the request repeatable.',
    tag,
    access: { kind: 'key', permissions: ['identities:write'], levels: ['platform', 'tenant'] },
    idempotency: 'optional',
    params: params('tenant_id'),
    query: NO_QUERY,
    body: createIdentityBody,
    success: [
      { status: 201, description: 'The new identity.', schema: identity },
      { status: 200, description: 'The identity that this `client_id` made before.', schema: identity },
    ],
    errors: [
      'address_invalid',
      'address_unsupported',
      'address_reserved',
      'local_part_too_long',
      'domain_not_found',
      'domain_not_ready',
      'domain_in_use',
      'address_taken',
      'username_taken',
      'client_id_conflict',
      'tenant_suspended',
      'tenant_erased',
      'cf_token_required',
      'billing_limit',
      'upstream_error',
      'upstream_rate_limited',
    ],
  }),
  'identities.listOfTenant': route({
    method: 'GET',
    path: '/v1/tenants/{tenant_id}/identities',
    summary: 'List the identities of a tenant',
    tag,
    access: read,
    idempotency: 'none',
    params: params('tenant_id'),
    query: z.strictObject(filters),
    body: null,
    success: [{ status: 200, description: 'Newest first; an identity key sees itself.', schema: identityPage }],
    errors: [],
  }),
  'identities.list': route({
    method: 'GET',
    path: '/v1/identities',
    summary: 'List identities',
    tag,
    access: read,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z.strictObject({
      ...filters,
      tenant_id: idInput('ten', 'Only this tenant; for platform keys.').optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'Newest first, within the reach of the key.', schema: identityPage }],
    errors: ['tenant_not_found'],
  }),
  'identities.lookup': route({
    method: 'GET',
    path: '/v1/identities/lookup',
    summary: 'Find an identity by its address',
    description: 'Finds active and retiring addresses.',
    tag,
    access: read,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z.strictObject({ address: z.string().meta({ description: 'Email address.' }) }),
    body: null,
    success: [{ status: 200, description: 'The identity.', schema: identity }],
    errors: ['identity_not_found'],
  }),
  'identities.get': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}',
    summary: 'Read an identity',
    tag,
    access: read,
    idempotency: 'none',
    params: params('identity_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The identity.', schema: identity }],
    errors: [],
  }),
  'identities.update': route({
    method: 'PATCH',
    path: '/v1/identities/{identity_id}',
    summary: 'Change, pause or resume an identity',
    description:
      'Fields that are missing stay. A pause for abuse is lifted only by a tenant or platform key; one that came with ' +
      'the suspension of the tenant ends with it.',
    tag,
    access: { kind: 'key', permissions: ['identities:write'] },
    idempotency: 'none',
    params: params('identity_id'),
    query: NO_QUERY,
    body: patchIdentityBody,
    success: [{ status: 200, description: 'The identity as it is now.', schema: identity }],
    errors: ['identity_paused'],
  }),
  'identities.addresses.list': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/addresses',
    summary: 'List the addresses of an identity',
    description: 'All of them on one page: an identity has at most twenty.',
    tag,
    access: read,
    idempotency: 'none',
    params: params('identity_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'Every address, whatever its status.', schema: addressPage }],
    errors: [],
  }),
};
