import { execFileSync } from 'node:child_process';
import { MARKS } from '@pmail/engine/marks.ts';
import { describe, expect, test } from 'vitest';
import { CASE_IDS } from './case-list.ts';
import { report } from './report.fixture.ts';
import { Tally } from './tally.ts';
import { doneAlready, quoted, type Run, verdict } from './verdict.ts';

function run(more: Partial<Run> = {}): Run {
  return { do: 'run', schedules: 0, first: 1, exhaustive: false, resume: false, ...more };
}

const MARKED = new Map(MARKS.map((mark) => [mark, 1] as const));

/** So many random schedules, of which the first met everything but what is left out. */
function tallyOf(schedules: number, without: Partial<ReturnType<typeof report>> = {}): Tally {
  const tally = new Tally();
  const cases = new Map(CASE_IDS.map((id) => [id, 1] as const));
  for (let n = 0; n < schedules; n++) {
    tally.add('random', report(n === 0 ? { marks: MARKED, crashes: MARKED, cases, ...without } : {}));
  }
  return tally;
}

function last(command: Run, tally: Tally, broken = 0): string | undefined {
  return verdict(command, tally, broken).lines.at(-1);
}

describe('the last line of a run', () => {
  test('is clean when everything was met', () => {
    expect(verdict(run({ schedules: 500 }), tallyOf(500), 0)).toMatchObject({ clean: true });
    expect(last(run({ schedules: 500 }), tallyOf(500))).toBe('clean');
  });

  test.each([
    [
      'marks never reached',
      last(run({ schedules: 100 }), tallyOf(100, { marks: new Map() })),
      new RegExp(`: ${MARKS.length} marks never reached$`),
    ],
    [
      'cases never met',
      last(run({ schedules: 500 }), tallyOf(500, { cases: new Map() })),
      new RegExp(`: ${CASE_IDS.length - 5} cases never met by chance$`),
    ],
    [
      'schedules that did not run',
      last(run({ schedules: 9 }), tallyOf(2)),
      /: of 9 random schedules that were to run, 2 have$/,
    ],
    ['a thread that broke', last(run({ schedules: 2 }), tallyOf(2), 1), /: threads that broke: 1$/],
    [
      'small schedules that did not run',
      last(run({ schedules: 2, exhaustive: true }), tallyOf(2)),
      /: no small schedule has run$/,
    ],
  ])('names %s', (_what, line, words) => {
    expect(line).toMatch(/^NOT CLEAN: /);
    expect(line).toMatch(words);
  });

  test('names marks at which nobody died, and how many failed', () => {
    const tally = tallyOf(1, { crashes: new Map([['consume.start', 1]]) });
    tally.add('one send', report({ violations: [{ invariant: 'I1', text: 'x' }] }));
    const line = last(run({ schedules: 1, exhaustive: true }), tally);
    expect(line).toBe(`NOT CLEAN: 1 failed; nobody died at ${MARKS.length - 1} marks`);
  });
});

test('a run that goes on and has done more than it is asked for says so', () => {
  const before = { next: 10_001, seconds: 1, tally: new Tally().saved() };
  expect(doneAlready(run({ schedules: 5_000 }), before)).toMatch(/^10000 random schedules .* done already, and 5000 /);
  expect(doneAlready(run({ schedules: 10_000 }), before)).toBeUndefined();
  expect(doneAlready(run({ schedules: 5_000 }), undefined)).toBeUndefined();
});

test('the name of a way is one word of a shell, whatever stands in it', () => {
  for (const name of ["the pointer's call is lost x0, crash", 'a $HOME `b` "c" \\d', "'", '']) {
    expect(execFileSync('sh', ['-c', `printf %s ${quoted(name)}`], { encoding: 'utf8' })).toBe(name);
  }
});
