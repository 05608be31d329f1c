import { type DeliveryStatus, isTerminal, type OutboundStatus } from './status.ts';

/** The only changes of a status that counts as ended: the late bounce and the complaint. */
const AFTER_THE_END: Partial<Record<OutboundStatus, readonly OutboundStatus[]>> = {
  delivered: ['bounced', 'complained'],
  bounced: ['complained'],
};

/**
 * The message's status from those of its recipients.
 *
 * @param current the message's status before. It tells `uncertain` from `submitted` while deliveries are open, and one
 *   that has ended changes only by a late bounce or a complaint (a canceled message's deliveries keep `queued`).
 */
export function rollUp(current: OutboundStatus, deliveries: readonly DeliveryStatus[]): OutboundStatus {
  const next = ofDeliveries(current, deliveries);
  return isTerminal(current) && AFTER_THE_END[current]?.includes(next) !== true ? current : next;
}

function ofDeliveries(current: OutboundStatus, deliveries: readonly DeliveryStatus[]): OutboundStatus {
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
