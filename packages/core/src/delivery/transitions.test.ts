import { describe, expect, it } from 'vitest';
import type { DeliveryKind } from './events.ts';
import { DELIVERY_STATUSES, type DeliveryStatus, isTerminal, OUTBOUND_STATUSES } from './status.ts';
import { EVENT_TRANSITIONS, isAllowedTransition, OWN_TRANSITIONS, transition } from './transitions.ts';

const KINDS: DeliveryKind[] = ['delivered', 'deferred', 'bounced', 'failed', 'rejected', 'complained'];

/** `=` newer details under the same status, `.` ignored, a letter the new status. Columns in the order of KINDS. */
const EXPECTED: Record<DeliveryStatus, string> = {
  queued: 'dDbfrc',
  submitted: 'dDbfrc',
  uncertain: 'dDbfrc',
  deferred: 'd=bfrc',
  delivered: '..b..c',
  bounced: '..=..c',
  complained: '......',
  failed: '......',
  rejected: '......',
  suppressed: '......',
};

const LETTERS: Record<string, DeliveryStatus> = {
  d: 'delivered',
  D: 'deferred',
  b: 'bounced',
  f: 'failed',
  r: 'rejected',
  c: 'complained',
};

function expected(status: DeliveryStatus, column: number): unknown {
  const letter = EXPECTED[status][column] ?? '';
  if (letter === '.') return 'ignored';
  return letter === '=' ? 'details' : { to: LETTERS[letter] };
}

describe('what an event does to a delivery', () => {
  const cells = DELIVERY_STATUSES.flatMap((status) =>
    KINDS.map((kind, column) => ({ status, kind, wanted: expected(status, column) })),
  );

  it.each(cells)('$status + $kind', ({ status, kind, wanted }) => {
    expect(transition(status, kind)).toEqual(wanted);
  });

  it('is decided for every status and every kind', () => {
    expect(Object.keys(EVENT_TRANSITIONS).sort()).toEqual([...DELIVERY_STATUSES].sort());
    for (const row of Object.values(EVENT_TRANSITIONS)) expect(Object.keys(row).sort()).toEqual([...KINDS].sort());
  });

  it('never leads back to an open status once the delivery has ended', () => {
    for (const status of DELIVERY_STATUSES.filter(isTerminal)) {
      for (const kind of KINDS) {
        const cell = transition(status, kind);
        if (typeof cell === 'object') expect(isTerminal(cell.to)).toBe(true);
      }
    }
  });

  it('comes to an end: no chain of status changes is longer than four', () => {
    const longest = (status: DeliveryStatus): number =>
      Math.max(
        0,
        ...KINDS.map((kind) => {
          const cell = transition(status, kind);
          return typeof cell === 'object' ? 1 + longest(cell.to) : 0;
        }),
      );
    // deferred, delivered, a late bounce, a complaint.
    expect(longest('queued')).toBe(4);
  });

  it('is in the end the same for any order of delivered, bounced and complained', () => {
    const apply = (kinds: DeliveryKind[]): DeliveryStatus =>
      kinds.reduce<DeliveryStatus>((status, kind) => {
        const cell = transition(status, kind);
        return typeof cell === 'object' ? cell.to : status;
      }, 'submitted');
    const orders = (kinds: DeliveryKind[]): DeliveryKind[][] =>
      kinds.length === 0
        ? [[]]
        : kinds.flatMap((kind) => orders(kinds.filter((other) => other !== kind)).map((rest) => [kind, ...rest]));
    for (const order of orders(['deferred', 'delivered', 'bounced', 'complained'])) {
      expect(apply(order)).toBe('complained');
    }
    for (const order of orders(['deferred', 'delivered', 'bounced'])) expect(apply(order)).toBe('bounced');
    for (const order of orders(['deferred', 'delivered'])) expect(apply(order)).toBe('delivered');
  });
});

describe('which changes of a delivery are allowed', () => {
  /** By events and by the service itself together. */
  const ALLOWED: Record<DeliveryStatus, DeliveryStatus[]> = {
    queued: [
      'submitted',
      'suppressed',
      'uncertain',
      'delivered',
      'deferred',
      'bounced',
      'failed',
      'rejected',
      'complained',
    ],
    submitted: ['delivered', 'deferred', 'bounced', 'failed', 'rejected', 'complained'],
    uncertain: ['submitted', 'delivered', 'deferred', 'bounced', 'failed', 'rejected', 'complained'],
    deferred: ['delivered', 'bounced', 'failed', 'rejected', 'complained'],
    delivered: ['bounced', 'complained'],
    bounced: ['complained'],
    complained: [],
    failed: [],
    rejected: [],
    suppressed: [],
  };

  it.each(DELIVERY_STATUSES)('from %s', (from) => {
    for (const to of DELIVERY_STATUSES) {
      expect({ to, allowed: isAllowedTransition(from, to) }).toEqual({ to, allowed: ALLOWED[from].includes(to) });
    }
  });

  it('never back to queued: what left the queue is not sent again', () => {
    for (const from of DELIVERY_STATUSES) expect(isAllowedTransition(from, 'queued')).toBe(false);
  });

  it('without a report only from queued and uncertain', () => {
    for (const [from, to] of Object.entries(OWN_TRANSITIONS)) {
      if (from !== 'queued' && from !== 'uncertain') expect(to).toEqual([]);
    }
    expect(OWN_TRANSITIONS.uncertain).not.toContain('suppressed');
  });
});

describe('ended statuses', () => {
  it('are delivered, bounced, complained, rejected, failed, suppressed and canceled', () => {
    expect(OUTBOUND_STATUSES.filter(isTerminal).toSorted()).toEqual([
      'bounced',
      'canceled',
      'complained',
      'delivered',
      'failed',
      'rejected',
      'suppressed',
    ]);
    expect(DELIVERY_STATUSES.filter((status) => !isTerminal(status)).toSorted()).toEqual([
      'deferred',
      'queued',
      'submitted',
      'uncertain',
    ]);
  });
});
