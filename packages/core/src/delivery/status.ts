/** Statuses of outbound mail (contracts, section "Resource shapes"). */

export const DELIVERY_STATUSES = [
  'queued',
  'suppressed',
  'submitted',
  'delivered',
  'deferred',
  'bounced',
  'complained',
  'rejected',
  'failed',
  'uncertain',
] as const;
/** Status of one recipient. */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const OUTBOUND_STATUSES = [
  'queued',
  'submitted',
  'deferred',
  'uncertain',
  'delivered',
  'bounced',
  'complained',
  'rejected',
  'failed',
  'suppressed',
  'canceled',
] as const;
/** Status of a whole outbound message. */
export type OutboundStatus = (typeof OUTBOUND_STATUSES)[number];

export const INBOUND_STATUSES = ['received', 'quarantined', 'throttled', 'hidden'] as const;
export type InboundStatus = (typeof INBOUND_STATUSES)[number];

export type MessageStatus = OutboundStatus | InboundStatus;

const TERMINAL: ReadonlySet<string> = new Set<DeliveryStatus | OutboundStatus>([
  'delivered',
  'bounced',
  'complained',
  'rejected',
  'failed',
  'suppressed',
  'canceled',
]);

/** Whether nothing more is expected; a late bounce or a complaint can still follow `delivered` or `bounced`. */
export function isTerminal(status: DeliveryStatus | OutboundStatus): boolean {
  return TERMINAL.has(status);
}

export const STATUS_REASONS = [
  'provider_validation',
  'sender_domain_unavailable',
  'recipient_suppressed_by_provider',
  'quota_exhausted',
  'transport_timeout',
  'transport_connection_lost',
  'resolved_not_sent',
  'domain_failing_no_fallback',
  'marketing_needs_ses',
  'mailbox_restored',
] as const;
/** Why a message is rejected, failed or uncertain. */
export type StatusReason = (typeof STATUS_REASONS)[number];

export type BounceType = 'hard' | 'soft';
