import type { DeliveryStatus, OutboundStatus } from './status.ts';

/**
 * The message's status from those of its recipients.
 *
 * @param current the message's status before; it decides only between `uncertain` and `submitted` while deliveries
 *   are open, and a `canceled` message stays canceled (its deliveries keep `queued`)
 */
export function rollUp(current: OutboundStatus, deliveries: readonly DeliveryStatus[]): OutboundStatus {
  if (current === 'canceled') return 'canceled';
  const left = deliveries.filter((status) => status !== 'suppressed');
  const has = (...statuses: DeliveryStatus[]): boolean => left.some((status) => statuses.includes(status));
  if (left.length === 0) return 'suppressed';
  if (has('complained')) return 'complained';
  if (has('queued')) return 'queued';
  if (has('submitted', 'deferred', 'uncertain')) {
    if (current === 'uncertain' && !has('submitted', 'deferred')) return 'uncertain';
    return has('deferred') ? 'deferred' : 'submitted';
  }
  if (has('bounced')) return 'bounced';
  if (has('failed')) return 'failed';
  if (has('rejected')) return 'rejected';
  return 'delivered';
}
