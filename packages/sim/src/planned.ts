import type { MarkName } from '@pmail/engine/marks.ts';

/**
 * One thing that goes wrong at an exact place: a crash at a mark, a call or a statement that fails. A run is told its faults before it
 * begins, and tells afterwards how often each has struck, so that a scenario can show that its fault was really there.
 */
export type PlannedFault = PlannedCrash | PlannedHarm | PlannedThrow;

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

export interface PlannedThrow {
  /** Statements of an object's storage that throw, inside transactions alone. */
  statement: RegExp;
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
  /** How often each has struck. */
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

  /** What befalls a call, if anything. */
  harmOf(label: string): PlannedHarm | undefined {
    return this.#hit((fault) => ('call' in fault && fault.call.test(label) ? fault : undefined));
  }

  /** Whether a statement throws. */
  throws(query: string): boolean {
    return (
      this.#hit((fault) => ('statement' in fault && fault.statement.test(query) ? fault : undefined)) !== undefined
    );
  }

  /** The first fault that is due. Every one that matches counts the call. */
  #hit<F extends PlannedHarm | PlannedThrow>(match: (fault: PlannedFault) => F | undefined): F | undefined {
    let found: F | undefined;
    this.#faults.forEach((fault, index) => {
      const matching = match(fault);
      if (matching === undefined) return;
      const seen = (this.#seen[index] ?? 0) + 1;
      this.#seen[index] = seen;
      const first = matching.nth ?? 1;
      if (found !== undefined || seen < first || seen >= first + (matching.times ?? 1)) return;
      this.#strike(index);
      found = matching;
    });
    return found;
  }

  #strike(index: number): void {
    this.struck[index] = (this.struck[index] ?? 0) + 1;
  }
}
