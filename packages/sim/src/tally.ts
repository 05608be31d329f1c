import { MARKS, type MarkName } from '@pmail/engine/marks.ts';
import { CASE_IDS, CASES, type CaseId } from './case-list.ts';
import type { Report } from './schedule.ts';

/** A handful of schedules cannot reach every mark, nor somewhat more every case. */
const MARKS_FROM = 100;
const CASES_FROM = 500;

/** What all schedules of a run have met. */
export class Tally {
  readonly marks = new Map<MarkName, number>();
  readonly cases = new Map<CaseId, number>();
  readonly pairs = new Set<string>();
  steps = 0;
  failed = 0;
  /** Schedules of one send, and random ones. */
  singles = 0;
  randoms = 0;

  add(kind: 'one send' | 'random', report: Report): void {
    if (kind === 'random') this.randoms++;
    else this.singles++;
    count(this.marks, report.marks);
    count(this.cases, report.cases);
    const faults = [...report.happened].sort();
    faults.forEach((a, index) => {
      for (const b of faults.slice(index + 1)) this.pairs.add(`${a} + ${b}`);
    });
    this.steps += report.steps;
    if (report.violations.length > 0) this.failed++;
  }

  /** Marks that this many schedules should have reached, and did not. */
  missedMarks(): MarkName[] {
    return this.singles + this.randoms < MARKS_FROM ? [] : MARKS.filter((mark) => !this.marks.has(mark));
  }

  /** Cases that this many random schedules should have met, and did not. */
  missedCases(): CaseId[] {
    return this.randoms < CASES_FROM ? [] : CASE_IDS.filter((id) => !this.cases.has(id));
  }

  /** How often each case was met, several to a line. */
  casesMet(): string {
    const parts = CASE_IDS.map((id) => `${id} ${this.cases.get(id) ?? 0}`);
    const lines: string[] = [];
    for (const part of parts) {
      const line = lines.at(-1);
      if (line === undefined || line.length + part.length > WIDTH) lines.push(part);
      else lines[lines.length - 1] = `${line}, ${part}`;
    }
    return lines.map((line) => `  ${line}`).join('\n');
  }
}

const WIDTH = 110;

function count<K>(sums: Map<K, number>, more: ReadonlyMap<K, number>): void {
  for (const [key, n] of more) sums.set(key, (sums.get(key) ?? 0) + n);
}

export function caseText(id: CaseId): string {
  return `${id}: ${CASES[id]}`;
}
