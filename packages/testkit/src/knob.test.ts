import { beforeEach, describe, expect, test } from 'vitest';
import { Knob, PortFault } from './doubles.ts';

/** A call through a knob goes well unless a test has turned it. */

let knob: Knob;
/** What has had its effect, in order. */
let effects: number[];

beforeEach(() => {
  knob = new Knob();
  effects = [];
});

function call(n: number): Promise<number> {
  return knob.run(() => {
    effects.push(n);
    return n * 10;
  });
}

/** What each of so many calls comes to, one after the other: its value, or the fault's message. */
async function callsInTurn(count: number): Promise<(number | string)[]> {
  const out: (number | string)[] = [];
  for (let n = 1; n <= count; n++) {
    out.push(await call(n).catch((error: unknown) => (error instanceof PortFault ? error.message : 'another error')));
  }
  return out;
}

const FAILED = 'failed before it had an effect';
const LOST = 'answer lost';

describe('a knob', () => {
  test('left alone lets every call through, and counts them', async () => {
    expect(await callsInTurn(3)).toEqual([10, 20, 30]);
    expect(effects).toEqual([1, 2, 3]);
    expect(knob.calls).toBe(3);
  });

  test('passes on what the effect throws', async () => {
    await expect(knob.run(() => Promise.reject(new TypeError('of the effect')))).rejects.toThrow('of the effect');
    expect(await callsInTurn(1)).toEqual([10]);
  });

  test.each([
    ['the next', 1, 0, [FAILED, 20, 30, 40]],
    ['the next two', 2, 0, [FAILED, FAILED, 30, 40]],
    ['the next two after one', 2, 1, [10, FAILED, FAILED, 40]],
  ] as const)('fails %s without effect', async (_which, times, after, results) => {
    knob.failNext(times, after);
    expect(await callsInTurn(4)).toEqual(results);
    expect(effects).toEqual(results.flatMap((result, index) => (result === FAILED ? [] : [index + 1])));
    expect(knob.calls).toBe(4);
  });

  test('loses the answers of the next, which have had their effect', async () => {
    knob.loseNext(2);
    expect(await callsInTurn(3)).toEqual([LOST, LOST, 30]);
    expect(effects).toEqual([1, 2, 3]);
  });

  test('fails and loses in turn when both are asked for', async () => {
    knob.failNext();
    knob.loseNext();
    expect(await callsInTurn(3)).toEqual([FAILED, LOST, 30]);
    expect(effects).toEqual([2, 3]);
  });

  test('gives the next up at once, and it lands when it is told to', async () => {
    knob.delayNext();
    expect(await callsInTurn(2)).toEqual(['timed out', 20]);
    expect(effects).toEqual([2]);
    knob.land();
    expect(effects).toEqual([2, 1]);
    knob.land();
    expect(effects).toEqual([2, 1]);
  });

  test('holds calls before their effect until it is opened, then in their order', async () => {
    const open = knob.hold();
    const calls = [call(1), call(2)];
    await Promise.resolve();
    expect(effects).toEqual([]);
    expect(knob.calls).toBe(2);
    open();
    expect(await Promise.all(calls)).toEqual([10, 20]);
    expect(effects).toEqual([1, 2]);
    expect(await call(3)).toBe(30);
  });
});
