import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyReport, type FuzzOptions, fuzzer, lopsided, must } from './fuzzer.ts';

const OPTIONS: FuzzOptions = { inputs: 20, seed: 20_261_130, work: null };

/** A fuzzer that breaks no rule, and all that it has seen. */
function watched(kept: readonly number[] = []): { seen: number[]; run: ReturnType<typeof fuzzer>['run'] } {
  const seen: number[] = [];
  const { run } = fuzzer('x', fc.nat(), (value) => seen.push(value) > 0, { kept });
  return { seen, run };
}

describe('a broken rule', () => {
  it('is shown by the smallest input that breaks it', async () => {
    const broken = fuzzer('x', fc.string(), (text) => {
      must(!text.includes('a'), 'no a');
      return true;
    });
    const { failure } = await broken.run({ ...OPTIONS, inputs: 5_000 });
    expect(failure).toMatchObject({ input: '"a"' });
    expect(failure?.error).toContain('no a');
  });

  it('is found again by the seed that is told, also where it was broken late', async () => {
    const seed = 2 ** 31 - 3_000;
    const all = watched();
    const seeds = new Set<number>();
    await all.run({ inputs: 12_000, seed, work: null, before: (part) => seeds.add(part) });
    expect([...seeds]).toEqual([seed, 2_000, 7_000]);
    const late = all.seen[7_777] ?? 0;
    const broken = fuzzer('x', fc.nat().map(String), (text) => text !== String(late));
    expect((await broken.run({ ...OPTIONS, inputs: 12_000, seed })).refused).toEqual({ refused: 1 });

    const run = (from: number, inputs: number) =>
      fuzzer('x', fc.noShrink(fc.nat()), (value) => {
        must(value !== late, 'not this one');
        return true;
      }).run({ ...OPTIONS, inputs, seed: from });
    const { failure } = await run(seed, 12_000);
    expect(failure).toMatchObject({ input: String(late), seed: 2_000 });
    expect((await run(failure?.seed ?? 0, 5_000)).failure).toEqual(failure);
  });
});

describe('inputs that are kept', () => {
  it('run first, in their order, and do not count among the others', async () => {
    const { seen, run } = watched([-1, -2]);
    const report = await run({ ...OPTIONS, inputs: 3 });
    expect(seen.slice(0, 2)).toEqual([-1, -2]);
    expect(seen.slice(2).every((value) => value >= 0)).toBe(true);
    expect(seen).toHaveLength(5);
    expect(report).toMatchObject({ inputs: 3, taken: 3, failure: null });
  });

  it('are told of when they break a rule, and nothing runs behind them', async () => {
    const seen: string[] = [];
    const broken = fuzzer(
      'x',
      fc.constant('b'),
      (text) => {
        seen.push(text);
        must(text !== 'a', 'no a');
        return true;
      },
      { kept: ['c', 'a', 'd'] },
    );
    const { failure } = await broken.run(OPTIONS);
    expect(failure).toMatchObject({ input: '"a"', seed: OPTIONS.seed });
    expect(seen).toEqual(['c', 'a']);
  });
});

describe('the work of an input', () => {
  /** Every input works 10 ms, and the one that is kept so many. */
  async function report(ms: number, judges_work: boolean) {
    let worked = 0;
    const check = (value: number): boolean => {
      worked += value < 0 ? ms : 10;
      return true;
    };
    const work = { clock: () => worked, most_ms: 100 };
    return await fuzzer('x', fc.nat(), check, { kept: [-1], judges_work }).run({ ...OPTIONS, work });
  }

  it('has a bound', async () => {
    expect(await report(100, false)).toMatchObject({ slowest_ms: 100, failure: null });
    expect((await report(101, false)).failure?.error).toContain('took 101 ms');
  });

  it('has none where the fuzzer looks at its growth', async () => {
    expect(await report(10_000, true)).toMatchObject({ slowest_ms: 10_000, failure: null });
  });
});

it('counts who is refused by the reason', async () => {
  const verdicts = [true, 'a', false, 'b', 'a'];
  let next = 0;
  const report = await fuzzer('x', fc.nat(), () => verdicts[next++] ?? true).run({ ...OPTIONS, inputs: 5 });
  expect(report).toMatchObject({ inputs: 5, taken: 1, refused: { a: 2, b: 1, refused: 1 } });
});

it.each([
  [1_000, 0, 'none of 1000 inputs was taken'],
  [1_000, 1_000, 'none of 1000 inputs was refused'],
  [1_000, 1, null],
  [1_000, 999, null],
  [999, 0, null],
])('of %i inputs, %i taken: %s', (inputs, taken, words) => {
  expect(lopsided({ ...emptyReport('x'), inputs, taken })).toBe(words);
});
