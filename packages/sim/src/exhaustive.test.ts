import { MARKS } from '@pmail/engine/marks.ts';
import { describe, expect, test } from 'vitest';
import { sendFamilies } from './exhaustive.ts';
import { ordersOf } from './reports.ts';

/** What is crossed with what in the small schedules of one send, as docs/simulator.md says. */

const families = sendFamilies();
const named = new Map(families.map((family) => [family.name, family]));

/** Reports of a family's name; undefined for families of something else. */
function ways(pattern: RegExp): { orders: Set<string>; count: number } {
  const orders = families.flatMap(({ name }) => pattern.exec(name)?.[1] ?? []);
  return { orders: new Set(orders), count: orders.length };
}

/** Everything that can be reported, in every order that it can come: 1 + 4 + 12 + 24 + 24. */
const EVERY = 65;
const TAKEN = ['accept', 'accept_and_lose_answer', 'accept_late', 'accept_without_id', 'partial', 'out_of_step_late'];

test('orders are of every choice, each once', () => {
  expect(ordersOf(['a', 'b'])).toEqual([[], ['a'], ['a', 'b'], ['b'], ['b', 'a']]);
  const all = ordersOf(['deferred', 'delivered', 'bounced_hard', 'complained']).map((order) => order.join(' '));
  expect([all.length, new Set(all).size]).toEqual([EVERY, EVERY]);
  expect(all).toContain('complained deferred bounced_hard delivered');
});

test('each way has a name of its own', () => {
  expect(named.size).toBe(families.length);
});

describe('one send', () => {
  test.each(TAKEN)(
    'of which the provider makes %s has every order of reports, with each number of copies',
    (outcome) => {
      for (const copies of [0, 1, 2]) {
        const found = ways(new RegExp(`^${outcome} \\[(.*)\\] x${copies}, crash$`));
        expect([found.count, found.orders.size]).toEqual([EVERY, EVERY]);
      }
    },
  );

  test.each(TAKEN.slice(0, 4))('has them too where reports name it, of which it makes %s', (outcome) => {
    for (const copies of [0, 1, 2]) {
      expect(ways(new RegExp(`^named ${outcome} \\[(.*)\\] x${copies}, crash$`)).orders.size).toBe(EVERY);
    }
  });

  test.each(TAKEN)('of which it makes %s dies everywhere, with every order of up to two reports', (outcome) => {
    const orders = ordersOf(['deferred', 'delivered', 'bounced_hard', 'complained']).filter(
      ({ length }) => length <= 2,
    );
    expect(orders).toHaveLength(17);
    for (const order of orders) {
      expect(named.get(`${outcome} [${order.join(' ')}] x0, crash`)?.marks, order.join(' ')).toEqual(MARKS);
    }
    for (const order of ['', 'delivered']) {
      for (const copies of [1, 2]) expect(named.get(`${outcome} [${order}] x${copies}, crash`)?.marks).toEqual(MARKS);
    }
  });

  test('that is plainly taken dies everywhere with extra deliveries too', () => {
    for (const outcome of TAKEN.slice(0, 2)) {
      const found = families.filter(
        ({ name, marks }) => name.startsWith(`${outcome} [`) && / x2,/.test(name) && marks === MARKS,
      );
      expect(found).toHaveLength(10);
    }
  });
});
