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
}

export interface ClientOptions {
  /** Such as `https://api.example.com`, without a path. */
  url: string;
  key: string;
  fetch?: typeof fetch;
  /** How often a request that may be repeated is tried again; 0 leaves that to the caller. */
  retries?: number;
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

const WAIT_MS = 250;
const WAIT_MS_MAX = 8_000;

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
    const { retries = 0 } = this.#options;
    const safe = ROUTES[id].method === 'GET' || input.idempotencyKey !== undefined;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(id, input);
      } catch (error) {
        const again = error instanceof ApiError ? error.retryable : safe;
        if (!again || !safe || attempt >= retries) throw error;
        await this.#wait(attempt, error instanceof ApiError ? error.retryAfterMs : null);
      }
    }
  }

  async #once<K extends RouteId>(id: K, input: CallInput<K>): Promise<CallAnswer<K>> {
    const { url, key, fetch: send = fetch } = this.#options;
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
    let response: Response;
    let text: string;
    try {
      response = await send(`${url}${path}${query.size > 0 ? `?${query}` : ''}`, init);
      text = await response.text();
    } catch (error) {
      throw new ConnectionError(error instanceof Error ? error.message : 'no answer', { cause: error });
    }
    if (response.ok)
      return {
        status: response.status,
        body: parse(response, text) as RouteAnswer<K>['body'],
        headers: response.headers,
      };
    const body = parse(response, text) as WireError | undefined;
    if (body?.error?.code === undefined)
      throw new ConnectionError(`status ${response.status} without an error of the API`);
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    throw new ApiError(response.status, body, Number.isFinite(retryAfter) ? retryAfter * 1_000 : null);
  }

  async #wait(attempt: number, retryAfterMs: number | null): Promise<void> {
    const { sleep = defaultSleep, random = Math.random } = this.#options;
    const backoff = Math.min(WAIT_MS * 2 ** attempt, WAIT_MS_MAX) * (0.5 + random() / 2);
    await sleep(Math.max(backoff, retryAfterMs ?? 0));
  }
}

function parse(response: Response, text: string): unknown {
  if (text === '' || !(response.headers.get('content-type') ?? '').includes('json')) return text === '' ? null : text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function defaultSleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
