import { expect, it } from 'vitest';
import { madeUpPlace, madeUpSend, taken } from '../load/history.fixture.ts';
import { judgeLedger, type Listed, listOutbound } from './ledger.ts';

/** A message that the API lists, of the nth key. */
const listed = (id: string, n: number): Listed => ({ id, subject: `Send ${n}` }) as Listed;
const two = [madeUpSend(1, 'm1', 'm1'), madeUpSend(2, 'm2')];

it('finds nothing where the list is what was answered, and the provider has no more than that', () => {
  expect(judgeLedger(two, [listed('m1', 1), listed('m2', 2)], taken('m1'))).toEqual([]);
});

it('finds a message from before the kill that the repeat did not answer with, also when it never left', () => {
  const list = [listed('lost', 1), listed('m1', 1), listed('m2', 2)];
  const second = { invariant: 'I1', text: 'send 1: a second message lost under its key' };
  expect(judgeLedger(two, list, taken('m1', 'm2'))).toEqual([second]);
  expect(judgeLedger(two, list, taken('lost', 'm1', 'm2'))).toContainEqual(second);
});

it('finds an email of the provider that is the message of no key', () => {
  expect(judgeLedger(two, [listed('m1', 1), listed('m2', 2)], taken('m1', 'gone', 'gone'))).toEqual([
    { invariant: 'I1', text: 'the provider took gone, which is the message of no key' },
  ]);
});

it('finds a message that was answered and is not listed, or is listed twice', () => {
  expect(judgeLedger(two, [listed('m2', 2), listed('m2', 2)], [])).toEqual([
    { invariant: 'I2', text: 'send 1: its message m1 is not listed' },
    { invariant: 'I1', text: 'send 2: its message m2 is listed 2 times' },
  ]);
});

it('lets a key that never got an answer have one message, and finds the second', () => {
  const sends = [madeUpSend(1), ...two.slice(1)];
  expect(judgeLedger(sends, [listed('m1', 1), listed('m2', 2)], taken('m1', 'm2'))).toEqual([]);
  expect(judgeLedger(sends, [listed('m1', 1), listed('m3', 1), listed('m2', 2)], taken('m1', 'm3'))).toEqual([
    { invariant: 'I1', text: 'send 1: a second message m3 under its key' },
    { invariant: 'I1', text: 'the provider took m3, which is the message of no key' },
  ]);
});

it('finds a message that nobody asked for', () => {
  expect(judgeLedger(two, [listed('m1', 1), listed('m2', 2), listed('m9', 9)], [])).toEqual([
    { invariant: 'I5', text: 'm9 (Send 9) is a message that nobody asked for' },
  ]);
});

it('reads the list to its last page', async () => {
  const pages = [
    { data: [listed('m1', 1)], next_cursor: 'c' },
    { data: [listed('m2', 2)], next_cursor: null },
  ];
  const place = madeUpPlace(() => pages.shift());
  expect((await listOutbound(place, place.sender)).map(({ id }) => id)).toEqual(['m1', 'm2']);
});
