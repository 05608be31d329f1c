import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readFuzzArgs, runFuzzers } from './command.ts';
import { type FuzzOptions, fuzzer } from './fuzzer.ts';

let said: string[] = [];

beforeEach(() => {
  said = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line));
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the arguments', () => {
  it('are read', () => {
    expect(readFuzzArgs(['--inputs', '7', '--seed', '0', '--only', 'x'])).toEqual({ inputs: 7, seed: 0, only: 'x' });
    expect(readFuzzArgs([])).toMatchObject({ inputs: 20_000, only: '' });
  });

  it.each([
    ['--seed=-5'],
    ['--seed=1.5'],
    ['--seed=x'],
    ['--seed=', '--inputs=5'],
    ['--seed', '-5'],
    ['--inputs=0'],
    ['--inputs=1e3'],
  ])('are refused: %s', (...args) => {
    expect(() => readFuzzArgs(args)).toThrow(/--seed|--inputs/);
  });
});

it('what is told to run again runs again, and breaks by the same input', async () => {
  // Broken late, where the seed of the part is another than that of the run.
  let count = 0;
  const rare = fuzzer('rare one', fc.noShrink(fc.nat()), (value) => {
    count++;
    if (value % 6_000 === 17) throw new Error('broken');
    return value % 2 === 0;
  });
  expect(await runFuzzers([rare], { inputs: 100_000, seed: 2 ** 31 - 1, only: '' })).toBe('broken');
  expect(count).toBeGreaterThan(0);
  const [, input] = /BROKEN by (.*)/.exec(said.join('\n')) ?? [];
  const [, name = '', inputs = '', seed = ''] =
    /--only '(.*)' (--inputs \d+) (--seed \d+)$/.exec(said.join('\n')) ?? [];
  expect(name).toBe('rare one');

  said = [];
  await runFuzzers([rare], readFuzzArgs(['--only', name, ...inputs.split(' '), ...seed.split(' ')]));
  expect(said.join('\n')).toContain(`BROKEN by ${input ?? 'nothing'}\n`);
});

describe('a run in which a parser', () => {
  it.each([
    ['takes nothing', false, 1_000, 'broken'],
    ['takes everything', true, 1_000, 'broken'],
    ['takes nothing of few', false, 999, 'clean'],
  ] as const)('%s (%s of %i) is %s', async (_what, verdict, inputs, ended) => {
    const one = fuzzer('one', fc.nat(), () => verdict);
    expect(await runFuzzers([one], { inputs, seed: 1, only: '' })).toBe(ended);
    expect(said.join('\n').includes('SHOWS LITTLE')).toBe(ended === 'broken');
  });

  it('is not there has run nothing', async () => {
    expect(await runFuzzers([], { inputs: 1, seed: 1, only: 'x' })).toBe('none');
  });
});

it('counts are told, with the reasons', async () => {
  const one = fuzzer('one', fc.nat(), (value) => value % 3 === 0 || (value % 3 === 1 ? 'odd' : 'even'));
  await runFuzzers([one], { inputs: 50, seed: 1, only: '' });
  expect(said[0]).toMatch(/^one: 50 inputs, \d+ taken, \d+ refused \((odd|even) \d+, (odd|even) \d+\)/);
});

it('time that passes without work is no work', async () => {
  const seen: FuzzOptions[] = [];
  const one = { name: 'one', run: fuzzer('one', fc.nat(), () => true).run };
  const kept = { ...one, run: (options: FuzzOptions) => one.run(seen[seen.push(options) - 1] ?? options) };
  await runFuzzers([kept], { inputs: 1, seed: 1, only: '' });
  const { clock } = seen[0]?.work ?? { clock: () => Number.NaN };
  const before = clock();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  expect(clock() - before).toBeLessThan(200);
});

it('an input that never comes to an end is told of, and ends the process', () => {
  const script = `
    import fc from 'fast-check';
    import { runFuzzers } from './command.ts';
    import { fuzzer } from './fuzzer.ts';
    let n = 0;
    const stuck = fuzzer('stuck one', fc.nat(), () => { while (++n > 2) n = 3; return true; });
    await runFuzzers([stuck], { inputs: 10, seed: 7, only: '' }, 500);`;
  const args = ['--input-type=module-typescript', '--eval', script];
  const here = import.meta.dirname;
  const { signal, stderr } = spawnSync(process.execPath, args, { cwd: here, encoding: 'utf8', timeout: 40_000 });
  expect(stderr).toContain('stuck one: input 3 of seed 7 did not come to an end in 0.5 s');
  expect(stderr).toContain("--only 'stuck one' --inputs 3 --seed 7");
  expect(signal).toBe('SIGKILL');
}, 60_000);
