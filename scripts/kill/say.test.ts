import { expect, it, test } from 'vitest';
import { counted } from '../load/words.ts';
import { addUp, ROUNDS_FOR_ALL } from './checks.ts';
import { jsonOf, lineOf, type Round, verdict } from './say.ts';

/** A round in which everything has happened once. */
function played(other: Partial<Round> = {}): Round {
  const exercised = Object.fromEntries(Object.keys(addUp([])).map((name) => [name, 1])) as unknown as Round;
  const known = {
    round: 1,
    ok: 1,
    fail: 0,
    not_sent: 2,
    canceled: 0,
    seconds: 1,
    phases: {},
    faults: [],
    broken: false,
  };
  const answers = { calm: new Map([['202', 3]]), around: new Map([['connection refused', 2]]) };
  return { ...exercised, ...known, answers, ...other };
}

const of = { taken: 1, seed: 7, failure: null };
const rounds = (n: number, other: Partial<Round> = {}): Round[] => Array.from({ length: n }, () => played(other));

it('is clean, in words that count', () => {
  const { lines, clean } = verdict([played()], of);
  expect(clean).toBe(true);
  expect(lines[0]).toMatch(/^1 round, 1 kill, 1 answer lost at a kill, 1 email taken /);
  expect(lines).toContain('  answers: 3 × 202');
  expect(lines.at(-1)).toBe('clean');
  expect(verdict(rounds(2), of).lines[0]).toMatch(/^2 rounds, 2 kills, 2 answers lost/);
  expect(verdict(rounds(2), of).lines).toContain('  around the kills: 4 × connection refused');
});

it('is not clean with a fault, nor when it ended outside of its rounds, and has its lines all the same', () => {
  const { lines, clean } = verdict([played({ faults: [{ invariant: 'I1', text: 'twice' }] })], of);
  expect([clean, lines.at(-1)]).toEqual([false, 'NOT CLEAN: 1 fault; seed 7']);
  const cut = verdict([], { ...of, failure: 'Error: no runtime' });
  expect(cut.clean).toBe(false);
  expect(cut.lines.slice(-2)).toEqual([
    '  it ended outside of its rounds: Error: no runtime',
    'NOT CLEAN: 1 fault; seed 7',
  ]);
});

it('is not shown when something never happened in ten rounds', () => {
  const { lines, clean } = verdict(rounds(ROUNDS_FOR_ALL, { asked_twice: 0 }), of);
  expect([clean, lines.at(-1)]).toEqual([false, 'NOT SHOWN: never once asked_twice; seed 7']);
});

test('a round has a line for people, and one for programs', () => {
  expect(lineOf(played())).toContain(
    'round 1: 1 kill; 1 ok, 0 refused, 1 answer lost, 2 not sent, 1 held; 2 uncertain',
  );
  expect(lineOf(played({ broken: true }))).toMatch(/BROKEN OFF$/);
  expect(JSON.parse(jsonOf(played()))).toMatchObject({ answers: { calm: { 202: 3 } } });
});

test('one is one', () => {
  expect([0, 1, 1.5].map((n) => counted(n, 'minute'))).toEqual(['0 minutes', '1 minute', '1.5 minutes']);
});
