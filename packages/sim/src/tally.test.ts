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
    crashes: new Map(MARKS.filter((mark) => mark !== without.mark).map((mark) => [mark, 1])),
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

  test('does not take what small schedules met for met by chance', () => {
    const tally = new Tally();
    tally.add('random', everything({ id: 'S14' }));
    tally.add('one send', everything());
    for (let n = 0; n < 499; n++) tally.add('random', report());
    expect(tally.missedCases()).toEqual(['S14']);
    expect(Tally.of(tally.saved()).missedCases()).toEqual(['S14']);
    expect(tally.casesMet()).toContain('S14 1 (0)');
    tally.add('random', report({ cases: new Map([['S14', 3]]) }));
    expect(tally.missedCases()).toEqual([]);
    expect(tally.casesMet()).toContain('S14 4 (1)');
  });

  test('asks for what chance meets seldom only of a run that is long enough', () => {
    const tally = new Tally();
    tally.add('random', everything({ id: 'E4' }));
    for (let n = 0; n < 4_998; n++) tally.add('random', report());
    expect(tally.missedCases()).toEqual([]);
    tally.add('random', report());
    expect(tally.missedCases()).toEqual(['E4']);
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

  test('with the small schedules misses a mark that nobody died at', () => {
    const tally = new Tally();
    tally.add('random', everything({ mark: 'event.paused' }));
    tally.add('one send', report({ crashes: new Map([['consume.start', 1]]) }));
    expect(tally.missedCrashes({ exhaustive: false })).toEqual([]);
    expect(tally.missedCrashes({ exhaustive: true })).toEqual(['event.paused']);
    expect(Tally.of(tally.saved()).crashesSeen()).toContain('consume.start 2');
  });

  test('misses schedules that were to run and told nothing', () => {
    const tally = new Tally();
    expect(tally.missing({ schedules: 0, exhaustive: false })).toEqual([]);
    expect(tally.missing({ schedules: 2, exhaustive: true })).toEqual([
      'of 2 random schedules that were to run, 0 have',
      'no small schedule has run',
    ]);
    for (let n = 0; n < 2; n++) tally.add('random', report());
    tally.add('one send', report());
    expect(tally.missing({ schedules: 2, exhaustive: true })).toEqual([]);
    expect(tally.missing({ schedules: 1, exhaustive: true })).toEqual([
      'of 1 random schedules that were to run, 2 have',
    ]);
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
