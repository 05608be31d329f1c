import { z } from 'zod';
import { apiKey, apiKeyPage, apiKeyWithSecret, createKeyBody, rotateKeyBody } from '../schemas/key.ts';
import { pagination } from '../schemas/query.ts';
import { NO_PARAMS, NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Keys';
const access = { kind: 'key', permissions: ['keys:manage'] } as const;

export const keyRoutes = {
  'keys.create': route({
    method: 'POST',
    path: '/v1/keys',
    summary: 'Create a key',
    description:
      'A key can create keys within its own reach and with no more than its own permissions. The secret is in this ' +
      'answer and nowhere else.',
    tag,
    access,
    idempotency: 'optional',
    params: NO_PARAMS,
    query: NO_QUERY,
    body: createKeyBody,
    success: [{ status: 201, description: 'The new key and its secret.', schema: apiKeyWithSecret }],
    errors: ['key_scope_exceeded', 'key_limit_reached', 'tenant_not_found', 'identity_not_found'],
  }),
  'keys.list': route({
    method: 'GET',
    path: '/v1/keys',
    summary: 'List keys',
    description:
      'A platform key sees all keys, a tenant key those of its tenant and of the identities there, an identity key those ' +
      'of its identity.',
    tag,
    access,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z.strictObject({ ...pagination }),
    body: null,
    success: [{ status: 200, description: 'Newest first.', schema: apiKeyPage }],
    errors: [],
  }),
  'keys.get': route({
    method: 'GET',
    path: '/v1/keys/{key_id}',
    summary: 'Read a key',
    description: 'Any key of the list, also one that has more permissions.',
    tag,
    access,
    idempotency: 'none',
    params: params('key_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The key, without its secret.', schema: apiKey }],
    errors: [],
  }),
  'keys.revoke': route({
    method: 'DELETE',
    path: '/v1/keys/{key_id}',
    summary: 'Revoke a key',
    description:
      'Takes effect at once and for good. A key that is wider than the asking one answers 403 `key_scope_exceeded`.',
    tag,
    access,
    idempotency: 'none',
    params: params('key_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 204, description: 'The key is revoked.', schema: null }],
    errors: ['key_scope_exceeded'],
  }),
  'keys.rotate': route({
    method: 'POST',
    path: '/v1/keys/{key_id}/rotate',
    summary: 'Give a key a new secret',
    description:
      'The id stays. The old secret keeps working for `overlap_hours`. A key that is wider than the asking one answers ' +
      '403 `key_scope_exceeded`.',
    tag,
    access,
    idempotency: 'optional',
    params: params('key_id'),
    query: NO_QUERY,
    body: rotateKeyBody,
    success: [{ status: 200, description: 'The key and its new secret.', schema: apiKeyWithSecret }],
    errors: ['key_scope_exceeded'],
  }),
};
