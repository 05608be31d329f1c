import { ROUTES, type RouteAnswer, type RouteId, type RouteInput } from '@pmail/contracts/routes.ts';
import type { WireError } from '@pmail/core/errors.ts';

/** An answer of the API that is not a success. `retryable` says whether the same request may succeed later. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: number;
  readonly code: string;
  readonly retryable: boolean;
  readonly fix: string;
  readonly requestId: string;
  readonly details: Record<string, unknown>;
  readonly retryAfterMs: number | null;

  constructor(status: number, { error }: WireError, retryAfterMs: number | null) {
    super(`${error.code}: ${error.message}`);
    this.status = status;
    this.code = error.code;
    this.retryable = error.retryable;
    this.fix = error.fix;
    this.requestId = error.request_id;
    this.details = error.details ?? {};
    this.retryAfterMs = retryAfterMs;
  }
}

/** The connection broke, or nothing that this client understands came back: what happened is not known. */
export class ConnectionError extends Error {
  override name = 'ConnectionError';
  /** Set when something on the way, which is not this API, named a time to wait. */
  readonly retryAfterMs: number | null;

  constructor(message: string, { retryAfterMs = null, cause }: { retryAfterMs?: number | null; cause?: unknown } = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

export interface ClientOptions {
  /** Such as `https://api.example.com`, without a path. */
  url: string;
  key: string;
  fetch?: typeof fetch;
  /** How often a request that may be repeated is tried again; 0 leaves that to the caller. */
  retries?: number;
  /** A longer wait than this, such as one until the next day's cap, is left to the caller: the error is thrown. */
  waitMsMax?: number;
  /** After so long without a whole answer a try is given up, as a connection that broke (60 s). The API itself ends within 30. */
  timeoutMs?: number;
  sleep?: (ms: number) => Promise<void>;
  /** A number in [0, 1), for spreading retries. */
  random?: () => number;
}

export interface CallInput<K extends RouteId> {
  params?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  body?: RouteInput<K>['body'];
  /** One per message; repeating a request with it never sends twice. */
  idempotencyKey?: string;
}

export interface CallAnswer<K extends RouteId> {
  status: number;
  body: RouteAnswer<K>['body'];
  headers: Headers;
}

const BACKOFF_MS = 250;
const BACKOFF_MS_MAX = 8_000;
const WAIT_MS_MAX = 60_000;
const TIMEOUT_MS = 60_000;

/** A request as it goes over the wire, made once, so that every try is the same whatever happens to the input. */
interface WireRequest {
  url: string;
  init: RequestInit;
}

/**
 * Typed client of the REST API. A request is repeated, always with the same Idempotency-Key, when the answer says that
 * this may help or no answer came and the repeat is safe: reads, and writes that carry a key.
 */
export class PmailClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  async call<K extends RouteId>(id: K, input: CallInput<K> = {}): Promise<CallAnswer<K>> {
    const { retries = 0, waitMsMax = WAIT_MS_MAX } = this.#options;
    const request = this.#request(id, input);
    const safe = ROUTES[id].method === 'GET' || input.idempotencyKey !== undefined;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once<K>(request);
      } catch (error) {
        if (!(error instanceof ApiError || error instanceof ConnectionError)) throw error;
        const again = safe && (error instanceof ConnectionError || error.retryable);
        const wait = Math.max(this.#backoff(attempt), error.retryAfterMs ?? 0);
        if (!again || attempt >= retries || wait > waitMsMax) throw error;
        await this.#sleep(wait);
      }
    }
  }

  #request<K extends RouteId>(id: K, input: CallInput<K>): WireRequest {
    const { url, key } = this.#options;
    const route = ROUTES[id];
    const path = route.path.replace(/\{(\w+)\}/g, (_match, name: string) =>
      encodeURIComponent(input.params?.[name] ?? ''),
    );
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(input.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const headers: Record<string, string> = { authorization: `Bearer ${key}` };
    if (input.body !== undefined) headers['content-type'] = 'application/json';
    if (input.idempotencyKey !== undefined) headers['idempotency-key'] = input.idempotencyKey;
    const init: RequestInit = { method: route.method, headers };
    if (input.body !== undefined) init.body = JSON.stringify(input.body);
    return { url: `${url}${path}${query.size > 0 ? `?${query}` : ''}`, init };
  }

  async #once<K extends RouteId>({ url, init }: WireRequest): Promise<CallAnswer<K>> {
    const { fetch: send = fetch, timeoutMs = TIMEOUT_MS } = this.#options;
    let response: Response;
    let text: string;
    try {
      response = await send(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
      text = await response.text();
    } catch (error) {
      throw new ConnectionError(error instanceof Error ? error.message : 'no answer', { cause: error });
    }
    const { status, headers } = response;
    const retryAfterMs = retryAfter(headers.get('retry-after'));
    const body = parse(response, text);
    if (response.ok) {
      if (body === UNREADABLE) throw new ConnectionError(`status ${status} with a body that is not JSON`);
      return { status, body: body as RouteAnswer<K>['body'], headers };
    }
    if (!isWireError(body)) throw new ConnectionError(`status ${status} without an error of the API`, { retryAfterMs });
    throw new ApiError(status, body, retryAfterMs);
  }

  #backoff(attempt: number): number {
    const { random = Math.random } = this.#options;
    return Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX) * (0.5 + random() / 2);
  }

  #sleep(ms: number): Promise<void> {
    const { sleep = defaultSleep } = this.#options;
    return sleep(ms);
  }
}

/** Milliseconds to wait by a Retry-After header, which holds seconds or a date (RFC 9110 section 10.2.3). */
function retryAfter(value: string | null): number | null {
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

function isWireError(body: unknown): body is WireError {
  const error = (body as Partial<WireError> | null)?.error;
  return typeof error?.code === 'string';
}

/** Says that an answer calls itself JSON and is none, as one does that was cut off. */
const UNREADABLE = Symbol('unreadable');

function parse(response: Response, text: string): unknown {
  if (text === '' || !(response.headers.get('content-type') ?? '').includes('json')) return text === '' ? null : text;
  try {
    return JSON.parse(text);
  } catch {
    return UNREADABLE;
  }
}

function defaultSleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
