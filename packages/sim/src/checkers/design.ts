import type { DeliveryKind } from '@pmail/core/delivery/events.ts';
import type { DeliveryStatus } from '@pmail/core/delivery/status.ts';

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
