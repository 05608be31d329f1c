import { MARKS } from '@pmail/engine/marks.ts';
import { describe, expect, test } from 'vitest';
import { CASE_IDS, type CaseId } from './case-list.ts';
import { report } from './report.fixture.ts';
import type { Report } from './schedule.ts';
import { caseText, Tally } from './tally.ts';

/** Every mark and case met once, but those that are left out. */
function everything(without: { mark?: (typeof MARKS)[number]; id?: CaseId } = {}): Report {
  return report({
    marks: new Map(MARKS.filter((mark) => mark !== without.mark).map((mark) => [mark, 1])),
    cases: new Map(CASE_IDS.filter((id) => id !== without.id).map((id) => [id, 1])),
  });
}

describe('the tally of a run', () => {
  test('of 500 random schedules misses a case that none of them met', () => {
    const tally = new Tally();
    tally.add('random', everything({ id: 'S14' }));
    for (let n = 0; n < 499; n++) tally.add('random', report());
    expect(tally.missedCases()).toEqual(['S14']);
    expect(tally.missedMarks()).toEqual([]);
    expect(caseText('S14')).toMatch(/^S14: .*cancel/);
  });

  test('of fewer asks for no case, and of a hundred for every mark', () => {
    const tally = new Tally();
    for (let n = 0; n < 98; n++) tally.add('random', everything({ mark: 'resolve.committed' }));
    tally.add('one send', report());
    expect(tally.missedMarks()).toEqual([]);
    tally.add('one send', report());
    expect(tally.missedMarks()).toEqual(['resolve.committed']);
    expect(tally.missedCases()).toEqual([]);
  });

  test('adds up over its schedules, and names every case in its report', () => {
    const tally = new Tally();
    tally.add('random', report({ cases: new Map([['S9', 2]]), happened: new Set(['crash', 'evict', 'answer_lost']) }));
    tally.add('one send', report({ cases: new Map([['S9', 1]]), violations: [{ invariant: 'I1', text: 'x' }] }));
    expect([tally.singles, tally.randoms, tally.failed, tally.steps]).toEqual([1, 1, 1, 20]);
    expect([...tally.pairs]).toEqual(['answer_lost + crash', 'answer_lost + evict', 'crash + evict']);
    const words = tally.casesMet();
    expect(words).toContain('S9 3');
    for (const id of CASE_IDS) expect(words).toMatch(new RegExp(`\\b${id} \\d`));
  });
});
