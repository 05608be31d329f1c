import { LIMITS } from '@pmail/core/limits.ts';
import { within } from './deadline.ts';

/** A call to an object, at most ten seconds. */
export function object<T>(call: Promise<T>): Promise<Awaited<T>> {
  return within(LIMITS.object_call_deadline_ms, 'object', call as Promise<Awaited<T>>);
}
