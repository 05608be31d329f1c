import { parseArgs } from 'node:util';
import { expect, test } from 'vitest';
import { interpret, positive, whole } from './options.ts';

const USAGE = 'npm run something -- [--rounds N]';
const read = (args: string[]): number => {
  const { values } = parseArgs({ args, options: { rounds: { type: 'string', default: '3' } } });
  return whole('rounds', values.rounds, 1);
};

test('options are read', () => {
  expect(interpret(USAGE, read, [])).toEqual({ options: 3 });
  expect(interpret(USAGE, read, ['--rounds', '7'])).toEqual({ options: 7 });
});

test('who asks for help gets the usage, and nothing has failed', () => {
  expect(interpret(USAGE, read, ['--rounds', 'x', '--help'])).toEqual({ say: USAGE, status: 0 });
});

test.each([
  [['--roundz', '7'], "Unknown option '--roundz'"],
  [['7'], "Unexpected argument '7'"],
  [['--rounds'], 'argument missing'],
  [['--rounds', '0'], "--rounds needs a whole number from 1 on, not '0'"],
  [['--rounds', 'many'], "--rounds needs a whole number from 1 on, not 'many'"],
])('%j is told in words, with the usage', (args, words) => {
  const reading = interpret(USAGE, read, args);
  expect(reading).toMatchObject({ status: 2 });
  const said = 'say' in reading ? reading.say : '';
  expect(said).toContain(words);
  expect(said.endsWith(`\n\n${USAGE}`)).toBe(true);
  expect(said).not.toContain('    at ');
});

test('numbers that are none are no numbers', () => {
  expect([positive('pace', '0.5'), positive('pace', '10'), whole('seed', '0')]).toEqual([0.5, 10, 0]);
  for (const text of ['', '0', '-1', '1e3', 'Infinity', ' 1', '1,5'])
    expect(() => positive('pace', text)).toThrow('--pace');
  for (const text of ['', '-1', '1.5', '0x10', '1234567890123456']) expect(() => whole('seed', text)).toThrow('--seed');
});
