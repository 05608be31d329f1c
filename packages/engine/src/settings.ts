import { LIMITS } from '@pmail/core/limits.ts';

/**
 * Waits of the send path, in ms. The defaults are the product's; a local run shortens them so that a person can watch
 * a claim go stale without waiting five minutes.
 */
export interface Waits {
  claim_ttl_ms: number;
  /** A queued message without a claim is queued again this long after its last dispatch. */
  dispatch_after_ms: number;
  /** First and longest wait between attempts to hand the outbox on. */
  outbox_backoff_ms_min: number;
  outbox_backoff_ms_max: number;
  maintenance_every_ms: number;
  hold_ttl_ms: number;
  /** Wait before quota bookkeeping that failed is tried again. */
  quota_task_retry_ms: number;
  /** Wait before an unanswered report of a test provider is sent again. */
  followup_retry_ms: number;
  orphan_age_ms_min: number;
  /** The longest wait between two attempts at a webhook. */
  webhook_wait_ms_max: number;
  /** A delivery that was taken up counts as lost when it has not been recorded by then; longer than an attempt takes. */
  webhook_lease_ms: number;
  /** A delivery this long past its time, or an event this old that nobody was told of, was lost by the queue. */
  webhook_sweep_after_ms: number;
}

export const DEFAULT_WAITS: Waits = {
  claim_ttl_ms: LIMITS.claim_ttl_ms,
  dispatch_after_ms: LIMITS.dispatch_after_ms,
  outbox_backoff_ms_min: LIMITS.outbox_backoff_ms_min,
  outbox_backoff_ms_max: LIMITS.outbox_backoff_ms_max,
  maintenance_every_ms: LIMITS.maintenance_every_ms,
  hold_ttl_ms: LIMITS.hold_ttl_ms,
  quota_task_retry_ms: 30_000,
  followup_retry_ms: 5 * 60_000,
  orphan_age_ms_min: LIMITS.orphan_age_ms_min,
  webhook_wait_ms_max: LIMITS.webhook_wait_ms_max,
  webhook_lease_ms: LIMITS.webhook_lease_ms,
  webhook_sweep_after_ms: LIMITS.webhook_sweep_after_ms,
};

/** Waits with some of them replaced; names that do not exist and values that are no positive number are refused. */
export function waitsWith(overrides: Record<string, unknown>): Waits {
  const waits = { ...DEFAULT_WAITS };
  for (const [name, value] of Object.entries(overrides)) {
    if (!Object.hasOwn(waits, name)) throw new Error(`unknown wait: ${name}`);
    if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
      throw new Error(`wait ${name} must be a positive number of milliseconds`);
    }
    waits[name as keyof Waits] = value;
  }
  return waits;
}
