import { describe, expect, it, test } from 'vitest';
import { madeUpMessage, madeUpPlace, madeUpProvider, madeUpSend } from './history.fixture.ts';
import { judge } from './verdict.ts';

/** One key with the message `m1` in this state, of which the provider's log has so many entries. */
async function faultsOf(status: string, calls: number, delivery = status): Promise<string[]> {
  const send = madeUpSend(1, 'm1');
  const provider = await madeUpProvider(...Array.from({ length: calls }, () => 'm1'));
  const messages = new Map([['m1', madeUpMessage('m1', status, delivery)]]);
  const faults = await judge(madeUpPlace(), [send], messages, provider);
  return faults.map(({ invariant, text }) => `${invariant} ${text}`);
}

describe('a message is held against the provider’s log', () => {
  it.each([
    ['delivered', 1],
    ['bounced', 1],
    ['rejected', 0],
    ['failed', 0],
    ['canceled', 0],
  ])('%s with %i entries is as it should be', async (status, calls) => {
    expect(await faultsOf(status, calls, status === 'canceled' ? 'queued' : status)).toEqual([]);
  });

  it.each(['rejected', 'failed', 'canceled'])('%s, and the provider took it, is a fault', async (status) => {
    const faults = await faultsOf(status, 1, status === 'canceled' ? 'queued' : status);
    expect(faults).toEqual([`I1 send 1: ${status}, but the provider took it`]);
  });

  it('delivered without an entry, and taken twice, are faults', async () => {
    expect(await faultsOf('delivered', 0)).toEqual(['I2 send 1: delivered, but the provider never took it']);
    expect(await faultsOf('delivered', 2)).toEqual(['I1 send 1: the provider took it 2 times']);
  });

  it('queued or uncertain at the end is a fault', async () => {
    expect(await faultsOf('queued', 0)).toEqual(['I2 send 1: still queued']);
    expect(await faultsOf('uncertain', 1)).toEqual(['I2 send 1: uncertain, and nobody has resolved it']);
  });
});

test('a key without an answer, with two messages, or with that of another key is a fault', async () => {
  const provider = await madeUpProvider('m1', 'm2');
  const messages = new Map(['m1', 'm2'].map((id) => [id, madeUpMessage(id)] as const));
  const sends = [madeUpSend(1), madeUpSend(2, 'm1', 'm2'), madeUpSend(3, 'm1')];
  expect(await judge(madeUpPlace(), sends, messages, provider)).toEqual([
    { invariant: 'I2', text: 'send 1: no answer at all' },
    { invariant: 'I1', text: 'send 2: one key, 2 messages' },
    { invariant: 'I5', text: 'send 3 and send 2 share a message' },
  ]);
});
