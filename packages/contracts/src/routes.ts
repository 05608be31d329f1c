import type { ErrorCode } from '@pmail/core/errors.ts';
import type { Result } from '@pmail/core/result.ts';
import type { z } from 'zod';
import { eventRoutes } from './routes/events.ts';
import { hookRoutes } from './routes/hooks.ts';
import { identityRoutes } from './routes/identities.ts';
import { keyRoutes } from './routes/keys.ts';
import { linkRoutes } from './routes/links.ts';
import { listRoutes } from './routes/lists.ts';
import { messageRoutes } from './routes/messages.ts';
import { ANY_QUERY, PATH_PARAMS } from './routes/params.ts';
import { platformRoutes } from './routes/platform.ts';
import { recoveryRoutes } from './routes/recovery.ts';
import { sendRoutes } from './routes/sends.ts';
import type { RouteSpec } from './routes/spec.ts';
import { suppressionRoutes } from './routes/suppressions.ts';
import { systemRoutes } from './routes/system.ts';
import { tenantRoutes } from './routes/tenants.ts';
import { threadRoutes } from './routes/threads.ts';
import { usageRoutes } from './routes/usage.ts';
import { webhookRoutes } from './routes/webhooks.ts';

export type { Access, Method, RouteSpec, SuccessSpec } from './routes/spec.ts';

/**
 * Every route of the API. The router registers these and nothing else; the OpenAPI document is made from them. Where
 * two paths fit a request the one listed first wins (`/v1/identities/lookup` before `/v1/identities/{identity_id}`).
 */
export const ROUTES = {
  ...systemRoutes,
  ...tenantRoutes,
  ...keyRoutes,
  ...identityRoutes,
  ...sendRoutes,
  ...messageRoutes,
  ...linkRoutes,
  ...threadRoutes,
  ...eventRoutes,
  ...usageRoutes,
  ...platformRoutes,
  ...recoveryRoutes,
  ...webhookRoutes,
  ...suppressionRoutes,
  ...listRoutes,
  ...hookRoutes,
} as const satisfies Record<string, RouteSpec>;

export type RouteId = keyof typeof ROUTES;

export const ROUTE_IDS = Object.keys(ROUTES) as RouteId[];

/** A route without the exact types of its schemas, for code that treats all routes alike. */
export function routeSpec(id: RouteId): RouteSpec {
  return ROUTES[id];
}

/**
 * Whether a request without a body counts as one with an empty object: one all of whose fields may be missing, unless it
 * is a change, which would change nothing. Mail is never sent by a request that says nothing.
 */
export function bodyIsOptional({ method, body, idempotency }: RouteSpec): boolean {
  return method !== 'PATCH' && idempotency !== 'required' && body?.safeParse({}).success === true;
}

type BodyOf<B> = B extends z.ZodType ? z.output<B> : null;

/** What a handler gets, parsed: path parameters as text, the query typed, the body checked. */
export interface RouteInput<K extends RouteId> {
  params: z.output<(typeof ROUTES)[K]['params']>;
  query: z.output<(typeof ROUTES)[K]['query']>;
  body: BodyOf<(typeof ROUTES)[K]['body']>;
}

/** Body of an answer that is not JSON of a schema; the handler sets its Content-Type in `headers`. */
export type RawBody = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

type AnswerOf<S> = S extends { status: infer N; schema: infer T }
  ? {
      status: N;
      body: T extends z.ZodType ? z.input<T> : S extends { contentType: string } ? RawBody : null;
      headers?: Record<string, string>;
    }
  : never;

/** What a handler answers when it succeeds: one of the declared statuses with the body that belongs to it. */
export type RouteAnswer<K extends RouteId> = AnswerOf<(typeof ROUTES)[K]['success'][number]>;

export type RouteHandler<K extends RouteId, Ctx> = (
  context: Ctx,
  input: RouteInput<K>,
) => Promise<Result<RouteAnswer<K>>>;

/** One handler for every route; a missing one is a type error. */
export type Handlers<Ctx> = { [K in RouteId]: RouteHandler<K, Ctx> };

/** Codes that any route can answer. */
const ALWAYS: readonly ErrorCode[] = ['internal_error', 'unavailable', 'timeout'];

/** Codes of every route that needs a key. */
const WITH_KEY: readonly ErrorCode[] = [
  'unauthenticated',
  'key_expired',
  'key_revoked',
  'permission_denied',
  'scope_denied',
  'rate_limited',
];

/** Every code a route can answer: its own, and those that follow from its access, parameters, query and body. */
export function errorsOf(spec: RouteSpec): ErrorCode[] {
  const codes = new Set<ErrorCode>(ALWAYS);
  const add = (list: readonly ErrorCode[]): void => {
    for (const code of list) codes.add(code);
  };
  // Only an address that stands in mail takes any query, and it has no body.
  if (spec.query !== ANY_QUERY) codes.add('invalid_request');
  if (spec.access.kind === 'key') add(WITH_KEY);
  for (const [name, { missing }] of Object.entries(PATH_PARAMS)) {
    if (name in spec.params.shape && !makes(spec, name)) codes.add(missing);
  }
  if ('cursor' in spec.query.shape) codes.add('cursor_expired');
  if (spec.body !== null) codes.add('payload_too_large');
  if (spec.idempotency === 'required') codes.add('idempotency_key_required');
  if (spec.idempotency !== 'none') add(['invalid_idempotency_key', 'idempotency_conflict', 'request_in_progress']);
  add(spec.errors);
  return [...codes];
}

/** A PUT makes what the end of its path names, so that is never missing. */
function makes({ method, path }: RouteSpec, param: string): boolean {
  return method === 'PUT' && path.endsWith(`/{${param}}`);
}
