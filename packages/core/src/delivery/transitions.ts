import type { DeliveryKind } from './events.ts';
import type { DeliveryStatus } from './status.ts';

/**
 * What an event does to a delivery: a new status, only newer details under the same status, or nothing.
 */
export type Transition = { to: DeliveryStatus } | 'details' | 'ignored';

const OPEN: Record<DeliveryKind, Transition> = {
  delivered: { to: 'delivered' },
  deferred: { to: 'deferred' },
  bounced: { to: 'bounced' },
  failed: { to: 'failed' },
  rejected: { to: 'rejected' },
  complained: { to: 'complained' },
};

const CLOSED: Record<DeliveryKind, Transition> = {
  delivered: 'ignored',
  deferred: 'ignored',
  bounced: 'ignored',
  failed: 'ignored',
  rejected: 'ignored',
  complained: 'ignored',
};

/** Rows: the delivery's status; columns: the event. The table of the design, cell by cell. */
export const EVENT_TRANSITIONS: Record<DeliveryStatus, Record<DeliveryKind, Transition>> = {
  queued: OPEN,
  submitted: OPEN,
  uncertain: OPEN,
  deferred: { ...OPEN, deferred: 'details' },
  delivered: { ...CLOSED, bounced: { to: 'bounced' }, complained: { to: 'complained' } },
  bounced: { ...CLOSED, bounced: 'details', complained: { to: 'complained' } },
  complained: CLOSED,
  failed: CLOSED,
  rejected: CLOSED,
  suppressed: CLOSED,
};

export function transition(status: DeliveryStatus, kind: DeliveryKind): Transition {
  return EVENT_TRANSITIONS[status][kind];
}

/**
 * Changes of a delivery that no event causes: the transport's result, a person's resolve, provider suppression, the
 * end of back-off. With EVENT_TRANSITIONS this is the whole set; a checker refuses anything else.
 */
export const OWN_TRANSITIONS: Record<DeliveryStatus, readonly DeliveryStatus[]> = {
  queued: ['submitted', 'rejected', 'failed', 'uncertain', 'suppressed'],
  uncertain: ['submitted', 'failed', 'rejected'],
  submitted: [],
  deferred: [],
  delivered: [],
  bounced: [],
  complained: [],
  failed: [],
  rejected: [],
  suppressed: [],
};

/** Whether a delivery may go from one status to another by any cause. */
export function isAllowedTransition(from: DeliveryStatus, to: DeliveryStatus): boolean {
  if (OWN_TRANSITIONS[from].includes(to)) return true;
  return Object.values(EVENT_TRANSITIONS[from]).some((cell) => typeof cell === 'object' && cell.to === to);
}
