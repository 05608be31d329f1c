import { describe, expect, it } from 'vitest';
import { rollUp } from './rollup.ts';
import { DELIVERY_STATUSES, type DeliveryStatus, OUTBOUND_STATUSES, type OutboundStatus } from './status.ts';

/**
 * The rule again, told the other way round: the deliveries become a set, each line of the design's list a test of it.
 * An ended message first.
 */
function oracle(current: OutboundStatus, deliveries: DeliveryStatus[]): OutboundStatus {
  const set = new Set(deliveries);
  set.delete('suppressed');
  const byDeliveries = ((): OutboundStatus => {
    if (set.size === 0) return 'suppressed';
    for (const status of ['complained', 'queued'] as const) if (set.has(status)) return status;
    const open = ['submitted', 'deferred', 'uncertain'].filter((status) => set.has(status as DeliveryStatus));
    if (open.length > 0) {
      if (current === 'uncertain' && open.every((status) => status === 'uncertain')) return 'uncertain';
      return open.includes('deferred') ? 'deferred' : 'submitted';
    }
    for (const status of ['bounced', 'failed', 'rejected'] as const) if (set.has(status)) return status;
    return 'delivered';
  })();
  if (['queued', 'submitted', 'deferred', 'uncertain'].includes(current)) return byDeliveries;
  if (current === 'delivered' && byDeliveries === 'bounced') return 'bounced';
  if (['delivered', 'bounced'].includes(current) && byDeliveries === 'complained') return 'complained';
  return current;
}

function combinations(count: number): DeliveryStatus[][] {
  if (count === 0) return [[]];
  return combinations(count - 1).flatMap((rest) => DELIVERY_STATUSES.map((status) => [status, ...rest]));
}

describe("a message's status from its deliveries", () => {
  it.each([0, 1, 2, 3])('agrees with the rule for every combination of %i deliveries under every status', (count) => {
    for (const deliveries of combinations(count)) {
      for (const current of OUTBOUND_STATUSES) {
        const status = rollUp(current, deliveries);
        if (status !== oracle(current, deliveries)) {
          expect({ current, deliveries, status }).toEqual({ current, deliveries, status: oracle(current, deliveries) });
        }
      }
    }
  });

  it.each<[OutboundStatus, DeliveryStatus[], OutboundStatus]>([
    ['queued', ['suppressed', 'suppressed'], 'suppressed'],
    ['submitted', ['delivered', 'suppressed'], 'delivered'],
    ['submitted', ['complained', 'submitted'], 'complained'],
    ['queued', ['submitted', 'queued'], 'queued'],
    ['queued', ['submitted', 'rejected'], 'submitted'],
    ['submitted', ['deferred', 'submitted', 'delivered'], 'deferred'],
    ['uncertain', ['uncertain', 'delivered'], 'uncertain'],
    ['uncertain', ['uncertain', 'submitted'], 'submitted'],
    ['submitted', ['uncertain'], 'submitted'],
    ['submitted', ['delivered', 'bounced', 'failed', 'rejected'], 'bounced'],
    ['submitted', ['delivered', 'failed', 'rejected'], 'failed'],
    ['submitted', ['delivered', 'rejected'], 'rejected'],
    ['submitted', ['delivered', 'delivered'], 'delivered'],
  ])('%s with %j is %s', (current, deliveries, status) => {
    expect(rollUp(current, deliveries)).toBe(status);
  });

  it('stays canceled, though its deliveries still say queued', () => {
    expect(rollUp('canceled', ['queued', 'queued'])).toBe('canceled');
  });

  it('changes after the end only by a late bounce or a complaint', () => {
    expect(rollUp('delivered', ['bounced', 'delivered'])).toBe('bounced');
    expect(rollUp('delivered', ['complained'])).toBe('complained');
    expect(rollUp('bounced', ['bounced', 'complained'])).toBe('complained');
    expect(rollUp('failed', ['failed', 'bounced'])).toBe('failed');
    expect(rollUp('failed', ['failed', 'complained'])).toBe('failed');
    expect(rollUp('rejected', ['rejected', 'bounced'])).toBe('rejected');
    expect(rollUp('complained', ['bounced', 'submitted'])).toBe('complained');
  });

  it('does not depend on the order of the recipients', () => {
    for (const deliveries of combinations(3)) {
      for (const current of ['queued', 'submitted', 'uncertain'] as const) {
        expect(rollUp(current, deliveries)).toBe(rollUp(current, deliveries.toReversed()));
      }
    }
  });
});
