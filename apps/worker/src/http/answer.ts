import { ERRORS, type ErrorCode, wireError } from '@pmail/core/errors.ts';
import type { Refusal } from '@pmail/core/result.ts';
import { secondsLeft } from './rate.ts';

/** Headers of every answer: nothing is cached, framed, sniffed or told to other origins. */
const SECURITY: Record<string, string> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=63072000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

/** What the router knows about the answer besides its content. */
export interface AnswerContext {
  requestId: string;
  now: number;
  /** The tightest limit the request was counted against. */
  rateLimit: number | null;
}

function baseHeaders(context: AnswerContext): Headers {
  const headers = new Headers(SECURITY);
  headers.set('request-id', context.requestId);
  headers.set('x-request-id', context.requestId);
  if (context.rateLimit !== null) headers.set('ratelimit-limit', String(context.rateLimit));
  return headers;
}

export function answer(
  context: AnswerContext,
  status: number,
  body: unknown,
  contentType: string | null,
  extra: Record<string, string> = {},
): Response {
  const headers = baseHeaders(context);
  for (const [name, value] of Object.entries(extra)) headers.set(name, value);
  if (body === null) return new Response(null, { status, headers });
  if (contentType !== null) {
    if (!headers.has('content-type')) headers.set('content-type', contentType);
    return new Response(body as BodyInit, { status, headers });
  }
  headers.set('content-type', 'application/json; charset=utf-8');
  return new Response(JSON.stringify(body), { status, headers });
}

export function errorAnswer(context: AnswerContext, refusal: Refusal, extra: Record<string, string> = {}): Response {
  const { status } = ERRORS[refusal.code];
  const headers = baseHeaders(context);
  headers.set('content-type', 'application/json; charset=utf-8');
  for (const [name, value] of Object.entries(extra)) headers.set(name, value);
  const retryAfter = retryAfterSeconds(refusal.code, refusal.details, context.now);
  if (retryAfter !== null) headers.set('retry-after', String(retryAfter));
  if (refusal.code === 'rate_limited') headers.set('ratelimit-reset', String(secondsLeft(context.now)));
  if (status === 401) headers.set('www-authenticate', 'Bearer');
  const body = wireError(refusal.code, context.requestId, refusal.details);
  return new Response(JSON.stringify(body, wellFormed), { status, headers });
}

/** Paths hold the caller's own names, which may be broken text; what we send is not. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}

function retryAfterSeconds(code: ErrorCode, details: Record<string, unknown> | undefined, now: number): number | null {
  const seconds = details?.['retry_after'];
  if (typeof seconds === 'number') return seconds;
  if (code === 'daily_cap_reached' && typeof details?.['resets_at'] === 'string') {
    return Math.max(1, Math.ceil((Date.parse(details['resets_at']) - now) / 1_000));
  }
  return code === 'request_in_progress' ? 1 : null;
}
