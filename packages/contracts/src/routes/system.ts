import { health } from '../schemas/health.ts';
import { me } from '../schemas/key.ts';
import { NO_PARAMS, NO_QUERY } from './params.ts';
import { route } from './spec.ts';

const tag = 'System';

export const systemRoutes = {
  'health.get': route({
    method: 'GET',
    path: '/health',
    summary: 'Whether the service works',
    description: 'Answers 503 with `details.config_invalid` while the deployment lacks a setting it needs.',
    tag,
    access: { kind: 'public' },
    idempotency: 'none',
    params: NO_PARAMS,
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The service answers.', schema: health }],
    errors: [],
  }),
  'openapi.get': route({
    method: 'GET',
    path: '/openapi.json',
    summary: 'This document',
    tag,
    access: { kind: 'public' },
    idempotency: 'none',
    params: NO_PARAMS,
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'OpenAPI 3.1.', schema: null, contentType: 'application/json' }],
    errors: [],
  }),
  'me.get': route({
    method: 'GET',
    path: '/v1/me',
    summary: 'The key in use',
    description: 'What the presented key is and may do.',
    tag,
    access: { kind: 'key', permissions: [] },
    idempotency: 'none',
    params: NO_PARAMS,
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The key.', schema: me }],
    errors: [],
  }),
};
