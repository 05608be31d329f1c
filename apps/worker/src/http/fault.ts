import { type Refusal, refuse } from '@pmail/core/result.ts';
import { isNoOwner, NotMadeYet } from '../objects/calls.ts';
import { DeadlineExceeded } from './deadline.ts';

/** What the platform adds to errors that crossed a binding. */
interface PlatformError {
  remote?: boolean;
  retryable?: boolean;
  overloaded?: boolean;
}

/** What the binding of the object store (`get: … (10001)`) and the platform itself say when they fail. */
const PLATFORM = /^(?:head|get|put|delete|list): .*\(\d+\)$|Network connection lost|internal error; reference/is;

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
  if (error instanceof NotMadeYet) return refuse('unavailable', { step: error.step });
  // Any other identity would have been given its mailbox; one on its way out whose mailbox never was has nothing to show.
  if (isNoOwner(error)) return refuse('identity_not_found');
  const { remote, retryable, overloaded } = error as PlatformError;
  if (retryable === true || overloaded === true) return refuse('unavailable');
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('D1_')) return refuse('unavailable', { step: 'directory' });
  if (PLATFORM.test(message)) return refuse('unavailable');
  return refuse('internal_error', remote === true ? { step: 'object' } : undefined);
}
