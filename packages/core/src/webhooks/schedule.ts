import { LIMITS } from '../limits.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits after the first to the last but one attempt, about three days in all. */
const WAITS_MS: readonly number[] = [
  30_000,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  8 * HOUR_MS,
  12 * HOUR_MS,
  12 * HOUR_MS,
  12 * HOUR_MS,
  19 * HOUR_MS,
];

/** Attempts of one delivery, the first included. */
export const WEBHOOK_ATTEMPTS_MAX = WAITS_MS.length + 1;

/**
 * How long to wait after a failed attempt, or null when there is none left.
 *
 * @param attempt of the schedule, from 1
 * @param random in [0, 1); spreads the wait by a tenth to both sides
 */
export function webhookWaitMs(attempt: number, random: number): number | null {
  const wait = WAITS_MS[attempt - 1];
  return wait === undefined ? null : Math.round(wait * (1 + (random * 2 - 1) * LIMITS.webhook_wait_spread_ratio));
}
