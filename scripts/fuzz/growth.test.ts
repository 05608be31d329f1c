import { describe, expect, it } from 'vitest';
import { mustGrowEvenly, type Work, workOf } from './growth.ts';

const LENGTH = 128_000;

/** Answers the costs without working, and remembers the longest input that was asked for. */
function costs(cost: (length: number) => number): { work: Work; longest: () => number } {
  let longest = 0;
  const work: Work = async (length) => {
    longest = Math.max(longest, length);
    return cost(length);
  };
  return { work, longest: () => longest };
}

describe('work that grows evenly', () => {
  it.each<[string, (length: number) => number]>([
    ['with the length', (length) => length / 100],
    ['a little faster', (length) => (length * Math.log2(length)) / 1_000],
    ['never at all', () => 10_000],
    ['too fast, and never comes to anything', (length) => length ** 2 / 1e9],
    ['not at all once it is read', (length) => (length > 60_000 ? 0 : length / 100)],
  ])('is let through: %s', async (_what, cost) => {
    const { work, longest } = costs(cost);
    await mustGrowEvenly(LENGTH, work);
    expect(longest()).toBe(LENGTH);
  });

  it('is let through on a machine that stops for a while', async () => {
    let calls = 0;
    const { work } = costs((length) => length / 100 + (++calls % 3 === 0 ? 5_000 : 0));
    await mustGrowEvenly(LENGTH, work);
  });
});

describe('work that does not', () => {
  it.each<[string, (length: number) => number]>([
    ['squares', (length) => length ** 2 / 1e6],
    ['cubes', (length) => length ** 3 / 1e9],
    ['squares of what is cheap', (length) => length ** 2 / 2e7],
  ])('is found before it takes long: %s', async (_what, cost) => {
    const { work, longest } = costs(cost);
    await expect(mustGrowEvenly(LENGTH, work)).rejects.toThrow('work grows');
    expect(cost(longest())).toBeLessThan(3_000);
  });

  it('is found where it is done', async () => {
    const slow = workOf((length) => / +$/.test(`${' '.repeat(length)}x`));
    await expect(mustGrowEvenly(LENGTH * 4, slow)).rejects.toThrow('work grows');
  }, 60_000);
});
