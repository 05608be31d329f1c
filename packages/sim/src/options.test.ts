import { describe, expect, test } from 'vitest';
import { readCommand } from './options.ts';

/** What the command line means. */

describe('a run', () => {
  test('has 2,000 schedules from the first seed on, after the small ones', () => {
    expect(readCommand([])).toEqual({ do: 'run', schedules: 2_000, first: 1, exhaustive: true, resume: false });
  });

  test('may be of the small ones alone', () => {
    expect(readCommand(['--schedules', '0'])).toMatchObject({ do: 'run', schedules: 0, exhaustive: true });
  });

  test('may have other numbers', () => {
    expect(readCommand(['--schedules', '10', '--seed', '7', '--no-exhaustive', '--resume'])).toEqual({
      do: 'run',
      schedules: 10,
      first: 7,
      exhaustive: false,
      resume: true,
    });
  });
});

describe('one schedule', () => {
  test('is replayed by its seed, whole or reduced', () => {
    expect(readCommand(['--seed', '7'])).toEqual({ do: 'replay', seed: 7, reduction: {} });
    const options = ['--seed', '7', '--faults', 'crash,evict', '--sends', '2', '--no-people', '--draw', '3'];
    expect(readCommand(options)).toEqual({
      do: 'replay',
      seed: 7,
      reduction: { faults: new Set(['crash', 'evict']), sends: 2, people: false, draw: 3 },
    });
    expect(readCommand(['--seed', '7', '--faults', ''])).toMatchObject({ reduction: { faults: new Set() } });
  });

  test('is replayed by its name, or made smaller', () => {
    expect(readCommand(['--way', 'accept [] x1'])).toEqual({ do: 'way', name: 'accept [] x1' });
    expect(readCommand(['--shrink', '9'])).toEqual({ do: 'shrink', seed: 9 });
  });
});

test.each([
  [['--scedules', '5'], /scedules/],
  [['5'], /5/],
  [['--schedules', '-5'], /schedules/],
  [['--seed', '1.5'], /whole number/],
  [['--seed', '5', '--faults', 'none'], /no such fault: none; there are crash/],
  [['--schedules', '0', '--no-exhaustive'], /nothing to run/],
  [['--faults', 'crash'], /^--faults does not go with a run/],
  [['--sends', '1', '--schedules', '5'], /^--sends does not go with a run/],
  [['--draw', '1', '--schedules', '5', '--seed', '1'], /^--draw does not go with a run/],
  [['--no-people'], /^--no-people does not go with a run/],
  [['--seed', '5', '--resume'], /^--resume does not go with --seed without --schedules/],
  [['--seed', '5', '--no-exhaustive'], /^--no-exhaustive does not go with --seed/],
  [['--way', 'a', '--seed', '5'], /^--seed does not go with --way/],
  [['--shrink', '5', '--draw', '1'], /^--draw does not go with --shrink/],
  [['--way', 'a', '--shrink', '5'], /^--shrink does not go with --way/],
])('%j is refused with words', (args, words) => {
  expect(() => readCommand(args)).toThrow(words);
});
