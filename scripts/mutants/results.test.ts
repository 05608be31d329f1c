import { describe, expect, it } from 'vitest';
import { CASE_IDS, INVARIANTS } from '../faults/cases.ts';
import { parsePatch } from './patch.ts';
import {
  keepResults,
  type MutantResult,
  parseResults,
  readPatches,
  resultProblems,
  standing,
  writeResults,
} from './results.ts';

const patch = (name: string, replace = 'b();', title = name) =>
  parsePatch(name, `title: ${title}\nfinds: I1\n@@ x.ts\na();\n@@ with\n${replace}\n@@ end\n`);

const one = patch('one');
const two = patch('two');

function result({ name, title, hash }: typeof one, more: Partial<MutantResult> = {}): MutantResult {
  const found = { caught_by: 'scenario', invariants: ['I1'], where: 'x', after: '2 scenarios', seconds: 1 } as const;
  return { name, title, ...found, invariants: ['I1'], ran: '2026-01-01', bounds: 'scenarios', patch: hash, ...more };
}

/** A row as it was written before each had a day of its own. */
const OLD = `{"ran":"2026-01-01, up to 2000 schedules","results":[
  {"name":"one","title":"one","caught_by":"scenario","invariants":["I1"],"where":"x","after":"2 scenarios","seconds":1}]}`;

describe('what is kept of a run', () => {
  it('puts its own day and bounds on what it looked for, and on nothing else', () => {
    const before = [result(one), result(two)];
    const fresh = [result(two, { ran: '2026-02-02', bounds: '5 schedules' })];
    const kept = keepResults([one, two], before, fresh, new Set());
    expect(kept.map(({ ran, bounds }) => [ran, bounds])).toEqual([
      ['2026-01-01', 'scenarios'],
      ['2026-02-02', '5 schedules'],
    ]);
    expect(parseResults(writeResults(kept))).toEqual(kept);
  });

  it('is nothing of a breakage that could not be looked for, or whose patch is gone', () => {
    expect(keepResults([one], [result(one), result(two)], [], new Set(['one']))).toEqual([]);
  });

  it('leaves results from before each had a day without one', () => {
    const [kept] = keepResults([one], parseResults(OLD), [], new Set());
    expect(kept).toMatchObject({ caught_by: 'scenario', ran: null, patch: null });
  });
});

describe('the check of breakages', () => {
  it('is content when each was found by its patch as it is', () => {
    expect(resultProblems([one, two], [result(one), result(two)])).toEqual([]);
  });

  it.each([
    ['has no result', []],
    ['was not found when it was last looked for', [result(one, { caught_by: null })]],
    ['has changed since it was looked for', [result(patch('one', 'c();'))]],
  ])('fails when one %s, and says what to run', (what, results) => {
    const problems = resultProblems([one, two], [...results, result(two)]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(what);
    expect(problems[0]).toMatch(/breakage one .*; run: npm run mutants -- --only one$/);
  });

  it('asks for a full run where results have no day', () => {
    expect(resultProblems([one], parseResults(OLD))).toEqual([
      '1 result of breakages without a date; run: npm run mutants',
    ]);
  });

  it('takes a patch with another title for the same', () => {
    expect(standing(patch('one', 'b();', 'said better'), result(one))).toBe('found');
  });
});

describe('the patches', () => {
  it('name as what they break only what is in the list', () => {
    const known = [...CASE_IDS, ...Object.keys(INVARIANTS)];
    expect(readPatches().flatMap(({ finds }) => finds.filter((id) => !known.includes(id)))).toEqual([]);
  });
});
