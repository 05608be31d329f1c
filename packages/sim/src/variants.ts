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

/** One small schedule of a run. */
export interface Way {
  schedule: Schedule;
  /** Runs it as the run did, which also looks at whether somebody died where somebody was to. */
  run: () => Promise<Report>;
}

export function wayAt({ make }: Family, place: Place | null): Way {
  const schedule = make(place);
  return {
    schedule,
    run: async () => {
      const report = await runSchedule(schedule);
      return place === null ? report : diedThere(schedule, place.mark, report);
    },
  };
}

/** Runs a family: undisturbed first, which tells the marks that it reaches, then with something happening at each. */
export async function* everyPlace(family: Family): AsyncGenerator<Ran> {
  const { name, depth, marks = MARKS } = family;
  const clean = await wayAt(family, null).run();
  yield { name, report: clean };
  for (const mark of marks) {
    const reached = Math.min(clean.marks.get(mark) ?? 0, depth);
    for (let nth = 1; nth <= reached; nth++) {
      yield { name: nameAt(name, { mark, nth }), report: await wayAt(family, { mark, nth }).run() };
    }
  }
}

/** A way that is to die at a place and does not is no way: what it shows it shows without the crash. */
export function diedThere({ faults }: Schedule, mark: MarkName, report: Report): Report {
  if (faults.crash_at === null || report.crashes.get(mark) === 1) return report;
  const text = `was to die at ${mark} once, and did ${report.crashes.get(mark) ?? 0} times`;
  return { ...report, violations: [...report.violations, { invariant: 'way', text }] };
}
