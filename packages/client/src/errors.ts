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

/** What went wrong when no answer of the API was had. Like the API's own codes these are stable, and none is one of them. */
export const CONNECTION_FAULTS = {
  no_answer: {
    retryable: true,
    fix: 'Repeat a read, and a write with the same Idempotency-Key. A write without one may have been done: look first.',
  },
  foreign_answer: {
    retryable: true,
    fix:
      'Find what stands between here and the API and answers in its place. Whether a write was done is not known: ' +
      'repeat it with the same Idempotency-Key, or look first.',
  },
  // The API answers with no redirect, and what sends elsewhere once will do so again.
  redirected: {
    retryable: false,
    fix: 'Give the client the url of the API itself; where this one leads is in location, and is never followed.',
  },
} as const;

export type ConnectionFault = keyof typeof CONNECTION_FAULTS;

/** What was seen of the answer, as far as there was one. */
interface Seen {
  status?: number;
  /** The API gives each answer a Request-Id; what answers in its place seldom does. */
  requestId?: string | null;
  /** Where a redirect leads, as it was written. */
  location?: string | null;
  /** Set when something on the way named a time to wait. */
  retryAfterMs?: number | null;
  cause?: unknown;
}

/** The connection broke, or what came back is no answer of the API: what happened to the request is not known. */
export class ConnectionError extends Error {
  override name = 'ConnectionError';
  readonly code: ConnectionFault;
  readonly retryable: boolean;
  readonly fix: string;
  readonly status: number | null;
  readonly requestId: string | null;
  readonly location: string | null;
  readonly retryAfterMs: number | null;

  constructor(code: ConnectionFault, message: string, seen: Seen = {}) {
    super(`${code}: ${message}`, { cause: seen.cause });
    this.code = code;
    this.retryable = CONNECTION_FAULTS[code].retryable;
    this.fix = CONNECTION_FAULTS[code].fix;
    this.status = seen.status ?? null;
    this.requestId = seen.requestId ?? null;
    this.location = seen.location ?? null;
    this.retryAfterMs = seen.retryAfterMs ?? null;
  }
}
