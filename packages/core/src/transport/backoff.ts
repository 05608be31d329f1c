import { LIMITS } from '../limits.ts';
import type { RetryClass } from './types.ts';

/**
 * Wait before the next attempt, in ms, with ±10 % jitter.
 *
 * @param n how many times in a row the transport has put the message off, from 1
 * @param random a number in [0, 1)
 */
export function backoffMs(retryClass: RetryClass, n: number, random: number): number {
  const base =
    retryClass === 'rate_limit' ? Math.min(10_000 * n, 60_000) : Math.min(60_000 * 2 ** Math.min(n - 1, 10), 3_600_000);
  return Math.round(base * (0.9 + 0.2 * random));
}

/** Whether a retry at `retryAt` would come too late for a message accepted at `submittedAt` (both Unix ms). */
export function isBackoffOver(submittedAt: number, retryAt: number): boolean {
  return retryAt > submittedAt + LIMITS.backoff_total_ms_max;
}
