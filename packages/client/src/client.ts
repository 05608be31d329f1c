import { ROUTES, type RouteId, type RouteInput } from '@pmail/contracts/routes.ts';
import { type CallAnswer, type Received, readAnswer, requestIdOf } from './answer.ts';
import { ApiError, ConnectionError } from './errors.ts';

export type { CallAnswer } from './answer.ts';
export { ApiError, ConnectionError, type ConnectionFault } from './errors.ts';

export interface ClientOptions {
  /** Such as `https://api.example.com`, without a path. */
  url: string;
  key: string;
  fetch?: typeof fetch;
  /**
   * How often a request that may be repeated is tried again (3). The first wait is at most a quarter of a second and each
   * further one twice as long, up to eight, or what Retry-After asks. With 0 each call is one request.
   */
  retries?: number;
  /** A longer wait than this (60 s), such as one until the next day's cap, is left to the caller: the error is thrown. */
  waitMsMax?: number;
  /**
   * After so long without a whole answer a try is given up, as a connection that broke (120 s). Most answers come within a
   * second; by its deadlines the API may take 110 s for a reply.
   */
  timeoutMs?: number;
  sleep?: (ms: number) => Promise<void>;
  /** A number in [0, 1), for spreading retries. */
  random?: () => number;
}

export interface CallInput<K extends RouteId> {
  params?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  body?: RouteInput<K>['body'];
  /** One per message; repeating a request with it never sends twice. Only where the operation looks at it. */
  idempotencyKey?: (typeof ROUTES)[K]['idempotency'] extends 'none' ? never : string;
}

const RETRIES = 3;
const BACKOFF_MS = 250;
const BACKOFF_MS_MAX = 8_000;
const WAIT_MS_MAX = 60_000;
/**
 * Longer than the deadlines of the slowest operation in a row, so that a try is not given up which the API has not: 5 s for
 * the directory to admit a send, then up to three rounds of 30 s for the mailbox and 5 s for the directory again.
 */
const TIMEOUT_MS = 120_000;

/** A request as it goes over the wire, made once, so that every try is the same whatever happens to the input. */
interface WireRequest {
  url: string;
  init: RequestInit;
}

/**
 * Typed client of the REST API. Where the answer says that it may help, or none came, a request is repeated if that is
 * safe, always with the same Idempotency-Key.
 */
export class PmailClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  async call<K extends RouteId>(id: K, input: CallInput<K> = {}): Promise<CallAnswer<K>> {
    const { retries = RETRIES, waitMsMax = WAIT_MS_MAX } = this.#options;
    const request = this.#request(id, input);
    const safe = isRepeatable(id, input.idempotencyKey);
    for (let attempt = 0; ; attempt++) {
      try {
        return readAnswer(id, await this.#once(request));
      } catch (error) {
        if (!(error instanceof ApiError || error instanceof ConnectionError)) throw error;
        const wait = Math.max(this.#backoff(attempt), error.retryAfterMs ?? 0);
        if (!safe || !error.retryable || attempt >= retries || wait > waitMsMax) throw error;
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
    // Followed, a redirect would make a GET of a POST, and what the GET answers the success of a send.
    const init: RequestInit = { method: route.method, headers, redirect: 'manual' };
    if (input.body !== undefined) init.body = JSON.stringify(input.body);
    return { url: `${url}${path}${query.size > 0 ? `?${query}` : ''}`, init };
  }

  async #once({ url, init }: WireRequest): Promise<Received> {
    const { fetch: send = fetch, timeoutMs = TIMEOUT_MS } = this.#options;
    let response: Response | undefined;
    try {
      response = await send(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
      return { response, bytes: new Uint8Array(await response.arrayBuffer()) };
    } catch (error) {
      const message = error instanceof Error ? error.message : 'nothing came back';
      const seen = response === undefined ? {} : { status: response.status, requestId: requestIdOf(response) };
      throw new ConnectionError('no_answer', message, { ...seen, cause: error });
    }
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

/**
 * A read, and a write under a key that the operation looks at. Nothing else, even where HTTP calls the method idempotent:
 * the repeat of a DELETE that was done is told that there is no such thing, and that of a PATCH or PUT may undo what
 * somebody else has changed between the two.
 */
function isRepeatable(id: RouteId, key: string | undefined): boolean {
  const { method, idempotency } = ROUTES[id];
  return method === 'GET' || (key !== undefined && idempotency !== 'none');
}

function defaultSleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
