import type { MarkName } from '@pmail/engine/marks.ts';

/**
 * One thing that goes wrong at an exact place: a crash at a mark, or a call that fails. A run is told its faults before it
 * begins, and tells afterwards how often each has struck, so that a scenario can show that its fault was really there.
 */
export type PlannedFault = PlannedCrash | PlannedHarm;

export interface PlannedCrash {
  crash: MarkName;
  /** Which time the mark is reached, from 1. */
  nth?: number;
}

export interface PlannedHarm {
  /** Calls with such a label. */
  call: RegExp;
  /**
   * `lost` has no effect, `answer_lost` has it unheard; `late` and `answer_late` take so many ms on the way there or
   * back.
   */
  harm: 'lost' | 'answer_lost' | 'late' | 'answer_late';
  ms?: number;
  /** The first of them that is struck, from 1, and how many from there on. */
  nth?: number;
  times?: number;
}

/** Puts something into a run at the moment when a mark is reached. */
export interface Hook {
  mark: MarkName;
  nth: number;
  run: () => void;
}

export class Plan {
  readonly #faults: readonly PlannedFault[];
  readonly #seen: number[];
  readonly struck: number[];

  constructor(faults: readonly PlannedFault[]) {
    this.#faults = faults;
    this.#seen = faults.map(() => 0);
    this.struck = faults.map(() => 0);
  }

  /** Whether a process dies at a mark that it reaches for the `count`-th time. */
  crashes(mark: MarkName, count: number): boolean {
    return this.#faults.some((fault, index) => {
      if (!('crash' in fault) || fault.crash !== mark || (fault.nth ?? 1) !== count) return false;
      this.#strike(index);
      return true;
    });
  }

  /** What befalls a call, if anything. Every plan that matches counts it. */
  harmOf(label: string): PlannedHarm | undefined {
    let found: PlannedHarm | undefined;
    this.#faults.forEach((fault, index) => {
      if (!('call' in fault) || !fault.call.test(label)) return;
      const seen = (this.#seen[index] ?? 0) + 1;
      this.#seen[index] = seen;
      const first = fault.nth ?? 1;
      if (found !== undefined || seen < first || seen >= first + (fault.times ?? 1)) return;
      this.#strike(index);
      found = fault;
    });
    return found;
  }

  #strike(index: number): void {
    this.struck[index] = (this.struck[index] ?? 0) + 1;
  }
}
