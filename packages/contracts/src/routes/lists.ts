import { z } from 'zod';
import { listEntry, listEntryPage, putListEntryBody } from '../schemas/list-entry.ts';
import { pagination } from '../schemas/query.ts';
import { NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Lists';
const access = { kind: 'key', permissions: ['suppressions:manage'], levels: ['platform', 'tenant'] } as const;
const path = '/v1/tenants/{tenant_id}/lists/{direction}/{kind}';
const list = ['tenant_id', 'direction', 'kind'] as const;

export const listRoutes = {
  'lists.list': route({
    method: 'GET',
    path,
    summary: 'List the entries of a list',
    tag,
    access,
    idempotency: 'none',
    params: params(...list),
    query: z.strictObject({ ...pagination }),
    body: null,
    success: [{ status: 200, description: 'Newest first.', schema: listEntryPage }],
    errors: [],
  }),
  'lists.get': route({
    method: 'GET',
    path: `${path}/{entry}`,
    summary: 'Read an entry',
    tag,
    access,
    idempotency: 'none',
    params: params(...list, 'entry'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The entry.', schema: listEntry }],
    errors: [],
  }),
  'lists.put': route({
    method: 'PUT',
    path: `${path}/{entry}`,
    summary: 'Put an entry on a list',
    description: 'A block entry is stronger than an allow entry. `@host` means that domain and none below it.',
    tag,
    access,
    idempotency: 'none',
    params: params(...list, 'entry'),
    query: NO_QUERY,
    body: putListEntryBody,
    success: [
      { status: 201, description: 'The new entry.', schema: listEntry },
      { status: 200, description: 'The entry was there and has the note given.', schema: listEntry },
    ],
    errors: [],
  }),
  'lists.delete': route({
    method: 'DELETE',
    path: `${path}/{entry}`,
    summary: 'Take an entry off a list',
    tag,
    access,
    idempotency: 'none',
    params: params(...list, 'entry'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 204, description: 'The entry is gone.', schema: null }],
    errors: [],
  }),
};
