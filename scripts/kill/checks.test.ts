import { describe, expect, it } from 'vitest';
import { addUp, type Exercise, type Exercised, KILL_CHECKS, ROUNDS_FOR_ALL, sayChecks } from './checks.ts';

const NAMES = [
  'kills',
  'kills_in_recovery',
  'answers_lost',
  'asked_twice',
  'held',
  'waited',
  'settled_sent',
  'settled_not_sent',
  'conflicts',
] as const;
const each = (n: number): Exercised => Object.fromEntries(NAMES.map((name) => [name, n])) as unknown as Exercised;

it('rounds are added up', () => {
  expect(addUp([each(1), { ...each(2), held: 0 }])).toEqual({ ...each(3), held: 1 });
  expect(addUp([])).toEqual(each(0));
});

describe('a check', () => {
  it('is held when what it speaks of has happened and nothing is wrong, with the counts', () => {
    const { lines, missing } = sayChecks(each(3), ROUNDS_FOR_ALL, 0);
    expect(missing).toEqual([]);
    expect(lines.every((line) => line.startsWith('held (3 '))).toBe(true);
    expect(lines.at(-1)).toMatch(/^held \(3 settled sent, 3 settled not sent\): /);
  });

  it('is only looked at when something is wrong', () => {
    expect(sayChecks(each(3), 10, 1).lines.every((line) => line.startsWith('looked at'))).toBe(true);
  });

  it.each(NAMES)('without %s is not held, and a run of ten rounds is not good enough', (name: Exercise) => {
    const total = { ...each(3), [name]: 0 };
    const { lines, missing } = sayChecks(total, ROUNDS_FOR_ALL, 0);
    expect(lines.filter((line) => line.startsWith('not exercised'))).toHaveLength(1);
    expect(missing).toEqual([name]);
    expect(sayChecks(total, ROUNDS_FOR_ALL - 1, 0).missing).toEqual([]);
  });
});

it('a run that did nothing has shown nothing, on any line', () => {
  const { lines, missing } = sayChecks(each(0), ROUNDS_FOR_ALL, 0);
  expect(lines).toHaveLength(KILL_CHECKS.length);
  expect(lines.every((line) => line.startsWith('not exercised'))).toBe(true);
  expect([...missing].sort()).toEqual([...NAMES].sort());
});
