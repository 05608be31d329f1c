import type { SuccessSpec } from '@pmail/contracts/routes/spec.ts';
import { type ROUTES, type RouteAnswer, type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import type { WireError } from '@pmail/core/errors.ts';
import { ApiError, ConnectionError } from './errors.ts';

/**
 * What an operation answers when it succeeds, as the route table says: JSON as its parsed value, a file or a raw message
 * as its bytes, and an answer without a body as null.
 */
export type CallAnswer<K extends RouteId> = AnswerOf<K, (typeof ROUTES)[K]['success'][number]>;

type AnswerOf<K extends RouteId, S> = S extends { status: infer N }
  ? { status: N; body: BodyOf<K, S>; headers: Headers }
  : never;

type BodyOf<K extends RouteId, S> = S extends { contentType: typeof JSON_TYPE }
  ? Record<string, unknown>
  : S extends { contentType: string }
    ? Uint8Array<ArrayBuffer>
    : S extends { status: infer N }
      ? Extract<RouteAnswer<K>, { status: N }>['body']
      : never;

/** A response with the whole of its body. */
export interface Received {
  response: Response;
  bytes: Uint8Array<ArrayBuffer>;
}

const JSON_TYPE = 'application/json';
/** How the table writes that a file comes under a type of its own. */
const ANY_TYPE = '*/*';

/**
 * Takes nothing for an answer of the API that the table does not have: between here and there stand proxies, which say
 * 200 with a page of their own, or with nothing.
 */
export function readAnswer<K extends RouteId>(id: K, received: Received): CallAnswer<K> {
  const { response } = received;
  const { status, headers } = response;
  if (isRedirect(response)) throw redirected(response);
  if (!response.ok) {
    const body = jsonOf(received);
    if (!isWireError(body)) throw foreign(response, 'which is no error of the API');
    throw new ApiError(status, body, retryAfter(response));
  }
  const spec = routeSpec(id).success.find((success) => success.status === status);
  if (spec === undefined) throw foreign(response, `a status that ${id} does not have`);
  return { status, body: bodyOf(spec, received), headers } as CallAnswer<K>;
}

function bodyOf(spec: SuccessSpec, received: Received): unknown {
  const { response, bytes } = received;
  const type = spec.schema === null ? spec.contentType : JSON_TYPE;
  if (type === undefined) {
    if (bytes.length > 0) throw foreign(response, 'which should have no body');
    return null;
  }
  if (type === JSON_TYPE) {
    const body = jsonOf(received);
    if (!isObject(body)) throw foreign(response, 'which should be a JSON object');
    return body;
  }
  // Any page could be a file that may have any type; that the API has answered shows by the id it gives each request.
  const ours = type === ANY_TYPE ? requestIdOf(response) !== null : mediaType(response) === type;
  if (!ours) throw foreign(response, type === ANY_TYPE ? 'without a Request-Id' : `which should be ${type}`);
  return bytes;
}

/** A browser shows of a redirect that is not followed only that it was one. */
function isRedirect({ type, status }: Response): boolean {
  return type === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(status);
}

function redirected(response: Response): ConnectionError {
  const { status, headers } = response;
  const location = headers.get('location');
  const seen = { status, location, requestId: requestIdOf(response) };
  return new ConnectionError('redirected', `status ${status} to ${location ?? 'somewhere unsaid'}`, seen);
}

function foreign(response: Response, what: string): ConnectionError {
  const { status } = response;
  const came = `status ${status} with ${mediaType(response) ?? 'no content type'}`;
  const requestId = requestIdOf(response);
  return new ConnectionError('foreign_answer', `${came}, ${what}`, {
    status,
    requestId,
    retryAfterMs: retryAfter(response),
  });
}

export function requestIdOf({ headers }: Response): string | null {
  return headers.get('request-id');
}

/** Milliseconds to wait by a Retry-After header, which holds seconds or a date (RFC 9110 section 10.2.3). */
function retryAfter({ headers }: Response): number | null {
  const value = headers.get('retry-after');
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/** The content type without its parameters. */
function mediaType({ headers }: Response): string | null {
  return headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? null;
}

/** Undefined where the body does not call itself JSON, or is none, as one that was cut off. */
function jsonOf({ response, bytes }: Received): unknown {
  if (mediaType(response) !== JSON_TYPE) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function isObject(body: unknown): body is Record<string, unknown> {
  return typeof body === 'object' && body !== null && !Array.isArray(body);
}

/** Gateways have errors of their own under the same names, so all that is acted on must be there. */
function isWireError(body: unknown): body is WireError {
  const error: Partial<Record<keyof WireError['error'], unknown>> =
    isObject(body) && isObject(body['error']) ? body['error'] : {};
  const { code, retryable, fix, request_id: requestId } = error;
  return [code, fix, requestId].every((text) => typeof text === 'string') && typeof retryable === 'boolean';
}
