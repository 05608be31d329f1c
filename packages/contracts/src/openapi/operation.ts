import { ERRORS, type ErrorCode } from '@pmail/core/errors.ts';
import type { z } from 'zod';
import type { Access, RouteSpec, SuccessSpec } from '../routes/spec.ts';
import { bodyIsOptional, errorsOf, type RouteId, routeSpec } from '../routes.ts';
import { EXAMPLES } from './examples.ts';
import { inlineSchema, type Json, type JsonObject, refTo } from './schemas.ts';
import { statusTitle } from './status.ts';

/** `messages.raw.get` as `messagesRawGet`, a name that client generators can use as it is. */
export function operationId(id: RouteId): string {
  return id.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());
}

function accessText(access: Access): string {
  if (access.kind === 'public') return 'Needs no key.';
  const { permissions, levels, waivedFor } = access;
  const keys = levels === undefined ? 'any key' : `${levels.join(' or ')} keys`;
  if (permissions.length === 0) return `For ${keys}.`;
  const needed = permissions.map((permission) => `\`${permission}\``).join(' and ');
  const waived = waivedFor === undefined ? '' : ` (not asked of ${waivedFor.join(' and ')} keys)`;
  return `For ${keys} with ${needed}${waived}.`;
}

function parameter(place: 'path' | 'query', name: string, schema: z.ZodType): JsonObject {
  const { description, ...rest } = inlineSchema(schema);
  const out: JsonObject = { name, in: place, required: place === 'path' || !schema.safeParse(undefined).success };
  if (description !== undefined) out['description'] = description;
  if (rest['type'] === 'array') Object.assign(out, { style: 'form', explode: false });
  return { ...out, schema: rest };
}

function parameters(spec: RouteSpec): JsonObject[] {
  const list: JsonObject[] = [];
  const add = (place: 'path' | 'query', shape: z.ZodObject['shape']): void => {
    for (const [name, schema] of Object.entries(shape)) list.push(parameter(place, name, schema as z.ZodType));
  };
  add('path', spec.params.shape);
  add('query', spec.query.shape);
  if (spec.idempotency === 'required') list.push({ $ref: '#/components/parameters/IdempotencyKey' });
  if (spec.idempotency === 'optional') list.push({ $ref: '#/components/parameters/OptionalIdempotencyKey' });
  return list;
}

function header(name: string): JsonObject {
  return { [name]: { $ref: `#/components/headers/${name}` } };
}

function success(id: RouteId, spec: RouteSpec, answer: SuccessSpec): JsonObject {
  const headers: JsonObject = header('Request-Id');
  if (spec.access.kind === 'key') Object.assign(headers, header('RateLimit-Limit'));
  if (spec.idempotency !== 'none') Object.assign(headers, header('Idempotent-Replayed'));
  const out: JsonObject = { description: answer.description, headers };
  if (answer.schema !== null) {
    const media: JsonObject = { schema: refTo(answer.schema) };
    const example = EXAMPLES[id]?.answers?.[answer.status];
    if (example !== undefined) media['example'] = example as Json;
    out['content'] = { 'application/json': media };
  } else if (answer.contentType !== undefined) {
    const schema = answer.contentType === 'application/json' ? { type: 'object' } : {};
    out['content'] = { [answer.contentType]: { schema } };
  }
  return out;
}

/** Answers that many routes share word for word; a route with more codes of the same status gets its own. */
const SHARED: Record<string, readonly ErrorCode[]> = {
  InvalidRequest: ['invalid_request'],
  Unauthenticated: ['unauthenticated', 'key_expired', 'key_revoked'],
  Forbidden: ['permission_denied', 'scope_denied'],
  RateLimited: ['rate_limited'],
  InternalError: ['internal_error'],
  Unavailable: ['unavailable'],
  Timeout: ['timeout'],
};

function failure(status: number, codes: readonly ErrorCode[]): JsonObject {
  const headers: JsonObject = header('Request-Id');
  if (status === 429) {
    Object.assign(headers, header('RateLimit-Limit'), header('RateLimit-Reset'), header('Retry-After'));
  }
  const examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  return {
    description: `${statusTitle(status)}: ${codes.map((code) => `\`${code}\``).join(', ')}.`,
    headers,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
  };
}

export function sharedResponses(): JsonObject {
  return Object.fromEntries(
    Object.entries(SHARED).map(([name, codes]) => [name, failure(ERRORS[codes[0] ?? 'internal_error'].status, codes)]),
  );
}

function responses(id: RouteId, spec: RouteSpec): JsonObject {
  const out: JsonObject = {};
  for (const answer of spec.success) out[String(answer.status)] = success(id, spec, answer);
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(spec)) {
    const { status } = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b)) {
    const shared = Object.entries(SHARED).find(([, same]) => same.join() === codes.join());
    out[String(status)] =
      shared === undefined ? failure(status, codes) : { $ref: `#/components/responses/${shared[0]}` };
  }
  return out;
}

function requestBody(id: RouteId, spec: RouteSpec): JsonObject | undefined {
  if (spec.rawBody !== undefined)
    return { required: true, content: { [spec.rawBody]: { schema: { type: 'string' } } } };
  if (spec.body === null) return undefined;
  const media: JsonObject = { schema: refTo(spec.body) };
  const example = EXAMPLES[id]?.body;
  if (example !== undefined) media['example'] = example as Json;
  return { required: !bodyIsOptional(spec), content: { 'application/json': media } };
}

/** The operation object of one route. */
export function operation(id: RouteId): JsonObject {
  const spec = routeSpec(id);
  const out: JsonObject = {
    operationId: operationId(id),
    tags: [spec.tag],
    summary: spec.summary,
    description: [spec.description, accessText(spec.access)].filter((text) => text !== undefined).join('\n\n'),
    security: spec.access.kind === 'public' ? [] : [{ ApiKey: [...spec.access.permissions] }],
    parameters: parameters(spec),
  };
  const body = requestBody(id, spec);
  if (body !== undefined) out['requestBody'] = body;
  out['responses'] = responses(id, spec);
  return out;
}
