import type { MessageResource } from '@pmail/core/message/resource.ts';
import { expect, it, test } from 'vitest';
import { apiError, lostAnswer, madeUpMessage, madeUpPlace, taken } from '../load/history.fixture.ts';
import { persist } from '../load/persist.ts';
import { settleAll } from './settle.ts';

/** A service whose message `m1` reads as these states say, the last of them for good, and whose resolve ends as told. */
async function settleWith(states: string[], resolves: (Error | null)[], inLog = false) {
  const messages = new Map<string, MessageResource>([['m1', madeUpMessage('m1', 'uncertain')]]);
  const calls: string[] = [];
  const place = madeUpPlace((call) => {
    calls.push(call);
    if (call === 'messages.get') return madeUpMessage('m1', (states.length > 1 ? states.shift() : states[0]) ?? '');
    const error = resolves.shift();
    if (error instanceof Error) throw error;
    return {};
  });
  const provider = { callsFor: () => (inLog ? taken('m1') : []) };
  const settled = await settleAll(place, messages, provider, 0);
  return { ...settled, resolved: calls.filter((call) => call === 'messages.resolve').length, end: messages.get('m1') };
}

it.each([
  [true, { settled_sent: 1, settled_not_sent: 0 }],
  [false, { settled_sent: 0, settled_not_sent: 1 }],
])('a person says what the provider’s log says: taken %s', async (inLog, expected) => {
  const settled = await settleWith(['uncertain', 'submitted'], [null], inLog);
  expect(settled).toMatchObject({ ...expected, faults: [], resolved: 1, end: { status: 'submitted' } });
});

it('a report that comes before the word settles it, and nobody else does', async () => {
  const settled = await settleWith(['uncertain', 'delivered'], [apiError('not_uncertain')]);
  expect(settled).toMatchObject({ settled_sent: 0, settled_not_sent: 0, faults: [], end: { status: 'delivered' } });
});

it.each([
  ['a broken connection', lostAnswer()],
  ['an answer that says again', apiError('unavailable')],
])('%s is repeated', async (_what, error) => {
  const settled = await settleWith(['uncertain', 'uncertain', 'failed'], [error, null]);
  expect(settled).toMatchObject({ settled_not_sent: 1, faults: [], resolved: 2 });
});

it('another refusal, and one that never ends, is a fault of the round and ends nothing', async () => {
  const text = expect.stringContaining('m1 could not be settled: ApiError: invalid_request');
  expect((await settleWith(['uncertain'], [apiError('invalid_request')])).faults).toEqual([{ invariant: 'O1', text }]);
  const never = await settleWith(
    ['uncertain'],
    Array.from({ length: 30 }, () => apiError('not_uncertain')),
  );
  expect(never).toMatchObject({ resolved: 20, faults: [{ invariant: 'O1' }] });
});

test('what may be done twice is repeated until it is answered, but not when it is refused for good', async () => {
  const given = [lostAnswer(), apiError('unavailable'), 'made'];
  const next = async (): Promise<unknown> => {
    const one = given.shift();
    if (one instanceof Error) throw one;
    return one;
  };
  expect(await persist(next, 0)).toBe('made');
  given.push(apiError('invalid_request'), 'never');
  await expect(persist(next, 0)).rejects.toThrow('invalid_request');
});
