import { MARKS } from '@pmail/engine/marks.ts';
import { CASE_IDS } from './case-list.ts';
import type { Command } from './options.ts';
import type { Progress } from './progress.ts';
import { caseText, type Tally } from './tally.ts';

/** What a run has come to, in words. */

export type Run = Extract<Command, { do: 'run' }>;

/** A broken rule fails everywhere; a few histories say as much as thousands. */
export const FAILURES_SHOWN_MAX = 3;

export interface Verdict {
  lines: string[];
  clean: boolean;
}

/** @param broken how many threads did not come to their end */
export function verdict(command: Run, tally: Tally, broken: number): Verdict {
  // What ended early cannot have met everything.
  const whole = tally.failed <= FAILURES_SHOWN_MAX;
  const marks = whole ? tally.missedMarks() : [];
  const cases = whole ? tally.missedCases() : [];
  const crashes = whole ? tally.missedCrashes(command) : [];
  const missing = whole ? tally.missing(command) : [];
  const wrong = [
    tally.failed === 0 ? '' : `${tally.failed} failed`,
    marks.length === 0 ? '' : `${marks.length} marks never reached`,
    crashes.length === 0 ? '' : `nobody died at ${crashes.length} marks`,
    cases.length === 0 ? '' : `${cases.length} cases never met by chance`,
    ...missing,
    broken === 0 ? '' : `threads that broke: ${broken}`,
  ].filter((text) => text !== '');
  const clean = wrong.length === 0;
  return {
    lines: [
      `marks reached: ${tally.marks.size} of ${MARKS.length}`,
      `marks died at: ${tally.crashes.size} of ${MARKS.length}`,
      tally.crashesSeen(),
      `transitions seen: ${tally.transitions.size}`,
      tally.transitionsSeen(),
      `pairs of faults seen together: ${tally.pairs.size} of ${tally.pairsPossible()}`,
      ...tally.missedPairs().map((pair) => `  not seen: ${pair}`),
      `cases met: ${tally.cases.size} of ${CASE_IDS.length}, by chance ${tally.byChance.size} (in so many random schedules)`,
      tally.casesMet(),
      ...marks.map((mark) => `  NEVER REACHED: ${mark}`),
      ...crashes.map((mark) => `  NOBODY DIED AT: ${mark}`),
      ...missing.map((text) => `  MISSING: ${text}`),
      ...cases.map((id) => `  NEVER MET BY CHANCE: ${caseText(id)}`),
      clean ? 'clean' : `NOT CLEAN: ${wrong.join('; ')}`,
    ],
    clean,
  };
}

/** Why there is nothing to go on with: as many or more have run before. Undefined when there is. */
export function doneAlready({ first, schedules }: Run, before: Progress | undefined): string | undefined {
  const done = (before?.next ?? first) - first;
  if (done <= schedules) return undefined;
  return `${done} random schedules of this code are done already, and ${schedules} were asked for: --schedules ${done} says how they ended, more goes on`;
}

/** A text as one word of a shell, whatever stands in it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
