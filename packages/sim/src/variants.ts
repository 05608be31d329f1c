import type { MarkName } from '@pmail/engine/marks.ts';
import { MARKS } from '@pmail/engine/marks.ts';
import { type Report, runSchedule, type Schedule } from './schedule.ts';

/** One kind of small schedule, of which each way is run. */
export interface Family {
  name: string;
  /** @param at the mark at which something happens, and which time it is reached; null for the undisturbed run */
  make: (at: Place | null) => Schedule;
  /** How many times of reaching one mark are looked at. */
  depth: number;
  /** Marks that are looked at; all of them when left out. */
  marks?: readonly MarkName[];
}

export interface Place {
  mark: MarkName;
  nth: number;
}

export interface Ran {
  name: string;
  report: Report;
}

function nameAt(family: string, { mark, nth }: Place): string {
  return `${family}, at ${mark} #${nth}`;
}

/** The place that a way's name tells, null for the undisturbed run; undefined when it is another family's. */
export function placeIn({ name }: Family, way: string): Place | null | undefined {
  if (way === name) return null;
  const nth = Number(/ #(\d+)$/.exec(way)?.[1]);
  for (const mark of MARKS) if (way === nameAt(name, { mark, nth })) return { mark, nth };
  return undefined;
}

/** Runs a family: undisturbed first, which tells the marks that it reaches, then with something happening at each. */
export async function* everyPlace({ name, make, depth, marks = MARKS }: Family): AsyncGenerator<Ran> {
  const clean = await runSchedule(make(null));
  yield { name, report: clean };
  for (const mark of marks) {
    const reached = Math.min(clean.marks.get(mark) ?? 0, depth);
    for (let nth = 1; nth <= reached; nth++) {
      const schedule = make({ mark, nth });
      yield { name: nameAt(name, { mark, nth }), report: diedThere(schedule, mark, await runSchedule(schedule)) };
    }
  }
}

/** A way that is to die at a place and does not is no way: what it shows it shows without the crash. */
export function diedThere({ faults }: Schedule, mark: MarkName, report: Report): Report {
  if (faults.crash_at === null || report.crashes.get(mark) === 1) return report;
  const text = `was to die at ${mark} once, and did ${report.crashes.get(mark) ?? 0} times`;
  return { ...report, violations: [...report.violations, { invariant: 'way', text }] };
}
