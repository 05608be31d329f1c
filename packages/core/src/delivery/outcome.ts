import type { Address } from '../address/address.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import { backoffMs, isBackoffOver } from '../transport/backoff.ts';
import type { RecipientRefusal, RetryClass, TransportResult } from '../transport/types.ts';
import type { DeliveryStatus, StatusReason } from './status.ts';

/** New status of one recipient after a transport call. */
export interface DeliveryChange {
  address: Address;
  status: Extract<DeliveryStatus, 'submitted' | 'rejected' | 'failed' | 'uncertain' | 'suppressed'>;
  smtp_code: string | null;
  enhanced_code: string | null;
  smtp_response: string | null;
}

/**
 * What one transport result means for a message. Recipients without a change stay `queued`; `retry` is present exactly
 * when there are any.
 */
export interface OutcomePlan {
  changes: DeliveryChange[];
  retry: { n: number; at: number; delay_ms: number } | null;
  /** Set when this result decides the reason shown on the message. */
  reason: StatusReason | null;
  /** Detail of a rejection, from the provider. */
  detail: string | null;
  /** Whether a transport took the message for anyone. */
  accepted: boolean;
  provider_message_id: string | null;
  rfc_message_id: string | null;
  /** Whether the outcome of the call is unknown, so that the whole message becomes uncertain. */
  unknown: boolean;
}

export interface OutcomeFacts {
  /** Recipients the call was made for: those still `queued`. */
  queued: Address[];
  /** How often in a row the message was put off before. */
  backoff_n: number;
  /** Unix ms at which the send was accepted. */
  submitted_at: number;
  now: number;
  /** In [0, 1). */
  random: number;
}

/** Applies the classification table: each kind of result to the queued recipients. */
export function planOutcome(result: TransportResult, facts: OutcomeFacts): OutcomePlan {
  const base: OutcomePlan = {
    changes: [],
    retry: null,
    reason: null,
    detail: null,
    accepted: false,
    provider_message_id: null,
    rfc_message_id: null,
    unknown: false,
  };
  switch (result.kind) {
    case 'accepted': {
      const refused = refusals(result.refused);
      const deferred = new Set(result.deferred);
      const taken = facts.queued.filter((address) => !refused.has(address) && !deferred.has(address));
      const plan: OutcomePlan = {
        ...base,
        changes: [...taken.map((address) => change(address, 'submitted')), ...rejectedChanges(facts.queued, refused)],
        accepted: true,
        provider_message_id: result.provider_message_id,
        rfc_message_id: result.rfc_message_id,
      };
      const waiting = facts.queued.filter((address) => deferred.has(address) && !refused.has(address));
      return waiting.length === 0 ? plan : putOff(plan, 'relay', 'deferred by the relay', waiting, facts);
    }
    case 'rejected': {
      const refused = refusals(result.refused);
      const others = facts.queued.filter((address) => !refused.has(address));
      const text = joinDetail(result.code, result.detail);
      return {
        ...base,
        changes: [
          ...others.map((address) => change(address, 'rejected', result.code, text)),
          ...rejectedChanges(facts.queued, refused),
        ],
        reason: result.reason,
        detail: text,
      };
    }
    case 'suppressed':
      return {
        ...base,
        changes: facts.queued.map((address) => change(address, 'rejected', null, result.detail)),
        reason: 'recipient_suppressed_by_provider',
        detail: joinDetail(result.code, result.detail),
      };
    case 'retry_later': {
      const refused = refusals(result.refused);
      const plan = { ...base, changes: rejectedChanges(facts.queued, refused) };
      const waiting = facts.queued.filter((address) => !refused.has(address));
      if (waiting.length === 0)
        return { ...plan, reason: 'provider_validation', detail: joinDetail(result.code, result.detail) };
      return putOff(plan, result.class, joinDetail(result.code, result.detail), waiting, facts);
    }
    case 'unknown':
      return {
        ...base,
        changes: facts.queued.map((address) => change(address, 'uncertain')),
        reason: result.reason,
        detail: result.detail,
        unknown: true,
      };
  }
}

/** Leaves `waiting` queued until the next attempt, or fails them when that would come too late. */
function putOff(
  plan: OutcomePlan,
  retryClass: RetryClass,
  detail: string,
  waiting: Address[],
  facts: OutcomeFacts,
): OutcomePlan {
  const n = facts.backoff_n + 1;
  const delay = backoffMs(retryClass, n, facts.random);
  const at = facts.now + delay;
  if (!isBackoffOver(facts.submitted_at, at)) return { ...plan, retry: { n, at, delay_ms: delay } };
  const failed = waiting.map((address) => change(address, 'failed', null, detail));
  return { ...plan, changes: [...plan.changes, ...failed], reason: 'quota_exhausted', detail };
}

/** A message that may not leave yet, without any transport call: the same back-off and the same end. */
export function planDeferral(detail: string, facts: OutcomeFacts): OutcomePlan {
  return planOutcome({ kind: 'retry_later', class: 'paused', code: '', detail, refused: [] }, facts);
}

function refusals(list: RecipientRefusal[]): Map<Address, RecipientRefusal> {
  return new Map(list.map((refusal) => [refusal.address, refusal]));
}

function rejectedChanges(queued: Address[], refused: Map<Address, RecipientRefusal>): DeliveryChange[] {
  return queued.flatMap((address) => {
    const refusal = refused.get(address);
    if (refusal === undefined) return [];
    const { smtp_code, enhanced_code, detail } = refusal;
    return [{ address, status: 'rejected' as const, smtp_code, enhanced_code, smtp_response: bounded(detail) }];
  });
}

function change(
  address: Address,
  status: DeliveryChange['status'],
  code: string | null = null,
  text: string | null = null,
): DeliveryChange {
  const smtp = code !== null && /^[245]\d\d$/.test(code) ? code : null;
  return { address, status, smtp_code: smtp, enhanced_code: null, smtp_response: text === null ? null : bounded(text) };
}

function bounded(text: string): string {
  return cutUnits(text, LIMITS.smtp_response_chars_max);
}

function joinDetail(code: string, detail: string): string {
  if (code === '' || detail.startsWith(code)) return detail;
  return detail === '' ? code : `${code}: ${detail}`;
}
