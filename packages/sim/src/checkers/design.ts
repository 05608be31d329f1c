import type { DeliveryKind } from '@pmail/core/delivery/events.ts';
import type { DeliveryStatus, OutboundStatus } from '@pmail/core/delivery/status.ts';

/**
 * The tables of the design, written down a second time: a checker that read those of the engine would call right whatever
 * they say.
 */

/** Which status a report makes of the one before; what is missing changes nothing. */
export const BY_REPORT: Record<DeliveryStatus, Partial<Record<DeliveryKind, DeliveryStatus>>> = {
  queued: {
    delivered: 'delivered',
    deferred: 'deferred',
    bounced: 'bounced',
    failed: 'failed',
    rejected: 'rejected',
    complained: 'complained',
  },
  submitted: {
    delivered: 'delivered',
    deferred: 'deferred',
    bounced: 'bounced',
    failed: 'failed',
    rejected: 'rejected',
    complained: 'complained',
  },
  uncertain: {
    delivered: 'delivered',
    deferred: 'deferred',
    bounced: 'bounced',
    failed: 'failed',
    rejected: 'rejected',
    complained: 'complained',
  },
  deferred: {
    delivered: 'delivered',
    bounced: 'bounced',
    failed: 'failed',
    rejected: 'rejected',
    complained: 'complained',
  },
  delivered: { bounced: 'bounced', complained: 'complained' },
  bounced: { complained: 'complained' },
  complained: {},
  failed: {},
  rejected: {},
  suppressed: {},
};

/** What the scripted recipients of the test tenants have reported about them. */
export const SCRIPTED: Readonly<Record<string, readonly DeliveryKind[]>> = {
  bounce: ['bounced'],
  softbounce: ['deferred', 'bounced'],
  complaint: ['delivered', 'complained'],
  deferred: ['deferred'],
  reject: [],
  timeout: [],
};

/** Changes of a recipient that no report causes. */
export const BY_US: Record<DeliveryStatus, readonly DeliveryStatus[]> = {
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

/** Changes of a message. What has ended changes by a late bounce or a complaint alone. */
export const OF_MESSAGE: Record<OutboundStatus, readonly OutboundStatus[]> = {
  queued: [
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
  ],
  submitted: ['deferred', 'delivered', 'bounced', 'complained', 'rejected', 'failed'],
  deferred: ['submitted', 'delivered', 'bounced', 'complained', 'rejected', 'failed'],
  uncertain: ['submitted', 'deferred', 'delivered', 'bounced', 'complained', 'rejected', 'failed'],
  delivered: ['bounced', 'complained'],
  bounced: ['complained'],
  complained: [],
  rejected: [],
  failed: [],
  suppressed: [],
  canceled: [],
};

const ENDED: readonly OutboundStatus[] = [
  'delivered',
  'bounced',
  'complained',
  'rejected',
  'failed',
  'suppressed',
  'canceled',
];

/** What a message is by its recipients, and by what it was before. */
export function summedUp(before: OutboundStatus, recipients: readonly DeliveryStatus[]): OutboundStatus {
  const next = bySum(before, recipients);
  return ENDED.includes(before) && !OF_MESSAGE[before].includes(next) ? before : next;
}

function bySum(before: OutboundStatus, recipients: readonly DeliveryStatus[]): OutboundStatus {
  const left = new Set(recipients.filter((status) => status !== 'suppressed'));
  if (left.size === 0) return 'suppressed';
  if (left.has('complained')) return 'complained';
  if (left.has('queued')) return 'queued';
  if (left.has('submitted') || left.has('deferred') || left.has('uncertain')) {
    if (before === 'uncertain' && !left.has('submitted') && !left.has('deferred')) return 'uncertain';
    return left.has('deferred') ? 'deferred' : 'submitted';
  }
  if (left.has('bounced')) return 'bounced';
  if (left.has('failed')) return 'failed';
  return left.has('rejected') ? 'rejected' : 'delivered';
}
