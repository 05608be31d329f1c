import type { ErrorCode } from './errors.ts';

/** One field of a request that was refused; `path` is dotted, list members in brackets: `to[3].address`. */
export interface FieldError {
  path: string;
  message: string;
}

/** A refusal that a caller can cause. It is a value, never an exception; the HTTP layer turns it into the wire error. */
export interface Refusal {
  ok: false;
  code: ErrorCode;
  details?: Record<string, unknown>;
}

export interface Ok<T> {
  ok: true;
  value: T;
}

export type Result<T> = Ok<T> | Refusal;

export function ok<T>(value: T): Ok<T> {
  return { ok: true, value };
}

export function refuse(code: ErrorCode, details?: Record<string, unknown>): Refusal {
  return details === undefined ? { ok: false, code } : { ok: false, code, details };
}

/** `400 invalid_request` for the given fields, the most common refusal. */
export function invalidRequest(...errors: FieldError[]): Refusal {
  return refuse('invalid_request', { errors });
}
