import { type Refusal, refuse } from '@pmail/core/result.ts';
import { DeadlineExceeded } from './deadline.ts';

/** What the platform adds to errors that crossed a binding. */
interface PlatformError {
  remote?: boolean;
  retryable?: boolean;
  overloaded?: boolean;
}

/**
 * The answer to an exception. A deadline of the directory means that nothing was tried; one of an object that the
 * effect is not known, which the same key finds out. Errors of the platform itself pass; those thrown by our own code in
 * an object are ours.
 */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof DeadlineExceeded) {
    return error.step === 'directory'
      ? refuse('unavailable', { step: error.step })
      : refuse('timeout', { step: error.step });
  }
  const { remote, retryable, overloaded } = error as PlatformError;
  if (retryable === true || overloaded === true) return refuse('unavailable');
  const message = error instanceof Error ? error.message : '';
  if (/^D1_|^R2|Network connection lost|internal error; reference/i.test(message)) return refuse('unavailable');
  return refuse('internal_error', remote === true ? { step: 'object' } : undefined);
}
