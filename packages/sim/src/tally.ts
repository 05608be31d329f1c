import { DELIVERY_STATUSES } from '@pmail/core/delivery/status.ts';
import { isAllowedTransition } from '@pmail/core/delivery/transitions.ts';
import { MARKS, type MarkName } from '@pmail/engine/marks.ts';
import { CASE_IDS, CASES, type CaseId } from './case-list.ts';
import { CHANCES } from './faults.ts';
import type { Report } from './schedule.ts';

/** A handful of schedules cannot reach every mark, nor somewhat more every case. */
const MARKS_FROM = 100;
const CASES_FROM = 500;
/** Cases that chance meets in one to four of 500 random schedules: after so few, luck decides whether it has. */
const RARE: ReadonlySet<CaseId> = new Set(['E4', 'T3 several', 'V9', 'V10 inside', 'V10 replay']);
const RARE_FROM = 5_000;

/** Every change of a recipient's status that the table allows. */
const TRANSITIONS = DELIVERY_STATUSES.flatMap((old) =>
  DELIVERY_STATUSES.filter((next) => next !== old && isAllowedTransition(old, next)).map((next) => `${old} → ${next}`),
);

/** A tally as a file holds it. */
export interface Saved {
  marks: [MarkName, number][];
  crashes: [MarkName, number][];
  cases: [CaseId, number][];
  by_chance: [CaseId, number][];
  transitions: [string, number][];
  pairs: string[];
  steps: number;
  failed: number;
  singles: number;
  randoms: number;
}

/** What all schedules of a run have met. */
export class Tally {
  readonly marks: Map<MarkName, number>;
  readonly crashes: Map<MarkName, number>;
  readonly cases: Map<CaseId, number>;
  /** How many random schedules met each case. The small ones meet most by themselves, so they say nothing of chance. */
  readonly byChance: Map<CaseId, number>;
  readonly transitions: Map<string, number>;
  readonly pairs: Set<string>;
  steps = 0;
  failed = 0;
  /** Schedules of one send, and random ones. */
  singles = 0;
  randoms = 0;

  constructor(saved: Partial<Saved> = {}) {
    this.marks = new Map(saved.marks);
    this.crashes = new Map(saved.crashes);
    this.cases = new Map(saved.cases);
    this.byChance = new Map(saved.by_chance);
    this.transitions = new Map(saved.transitions);
    this.pairs = new Set(saved.pairs);
    this.steps = saved.steps ?? 0;
    this.failed = saved.failed ?? 0;
    this.singles = saved.singles ?? 0;
    this.randoms = saved.randoms ?? 0;
  }

  static of(saved: Saved): Tally {
    return new Tally(saved);
  }

  saved(): Saved {
    return {
      marks: [...this.marks],
      crashes: [...this.crashes],
      cases: [...this.cases],
      by_chance: [...this.byChance],
      transitions: [...this.transitions],
      pairs: [...this.pairs],
      steps: this.steps,
      failed: this.failed,
      singles: this.singles,
      randoms: this.randoms,
    };
  }

  add(kind: 'one send' | 'random', report: Report): void {
    if (kind === 'random') {
      this.randoms++;
      count(this.byChance, new Map([...report.cases.keys()].map((id) => [id, 1])));
    } else this.singles++;
    count(this.marks, report.marks);
    count(this.crashes, report.crashes);
    count(this.cases, report.cases);
    count(this.transitions, report.transitions);
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

  /** Marks at which nobody died; the small schedules have a way for each. */
  missedCrashes({ exhaustive }: { exhaustive: boolean }): MarkName[] {
    return exhaustive ? MARKS.filter((mark) => !this.crashes.has(mark)) : [];
  }

  /** Cases that this many random schedules should have met, and none of them did, whatever the small ones met. */
  missedCases(): CaseId[] {
    const from = (id: CaseId): number => (RARE.has(id) ? RARE_FROM : CASES_FROM);
    return CASE_IDS.filter((id) => this.randoms >= from(id) && !this.byChance.has(id));
  }

  /** Of the pairs of faults that are chances, how many there are. */
  pairsPossible(): number {
    return (CHANCES.length * (CHANCES.length - 1)) / 2;
  }

  missedPairs(): string[] {
    if (this.randoms < CASES_FROM) return [];
    const names = [...CHANCES].sort();
    return names.flatMap((a, index) =>
      names
        .slice(index + 1)
        .map((b) => `${a} + ${b}`)
        .filter((pair) => !this.pairs.has(pair)),
    );
  }

  /** How often each change of a status was made; those that never were have a 0. */
  transitionsSeen(): string {
    return lines(TRANSITIONS.map((change) => `${change} ${this.transitions.get(change) ?? 0}`));
  }

  /** How often somebody died at each mark, several to a line. */
  crashesSeen(): string {
    return lines(MARKS.map((mark) => `${mark} ${this.crashes.get(mark) ?? 0}`));
  }

  /** What is wrong with the number of schedules that told of themselves; several when all of it is. */
  missing({ schedules, exhaustive }: { schedules: number; exhaustive: boolean }): string[] {
    return [
      ...(this.randoms === schedules
        ? []
        : [`of ${schedules} random schedules that were to run, ${this.randoms} have`]),
      ...(exhaustive && this.singles === 0 ? ['no small schedule has run'] : []),
    ];
  }

  /** How often each case was met, and in how many random schedules, several to a line. */
  casesMet(): string {
    return lines(CASE_IDS.map((id) => `${id} ${this.cases.get(id) ?? 0} (${this.byChance.get(id) ?? 0})`));
  }
}

/** Several to a line. */
function lines(parts: string[]): string {
  const out: string[] = [];
  for (const part of parts) {
    const line = out.at(-1);
    if (line === undefined || line.length + part.length > WIDTH) out.push(part);
    else out[out.length - 1] = `${line}, ${part}`;
  }
  return out.map((line) => `  ${line}`).join('\n');
}

const WIDTH = 110;

function count<K>(sums: Map<K, number>, more: ReadonlyMap<K, number>): void {
  for (const [key, n] of more) sums.set(key, (sums.get(key) ?? 0) + n);
}

export function caseText(id: CaseId): string {
  return `${id}: ${CASES[id]}`;
}
