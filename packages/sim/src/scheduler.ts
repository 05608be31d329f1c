/**
 * Virtual time. Everything that takes time is an event here; between two events all promises run to their end, so a
 * schedule is a sequence of choices made by one seeded source, and the same seed makes the same history.
 */

export type Random = () => number;

/** A small seeded generator (mulberry32), returning numbers in [0, 1). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Scheduled {
  at: number;
  order: number;
  run: () => void;
  canceled: boolean;
}

export interface Cancelable {
  cancel: () => void;
}

export class Scheduler {
  now: number;
  steps = 0;
  /** When `steps` is beyond this, whoever runs it may give up. */
  stepsMax = Number.POSITIVE_INFINITY;
  readonly #heap: Scheduled[] = [];
  #order = 0;

  constructor(start: number) {
    this.now = start;
  }

  /** Runs something at a virtual time (Unix ms); never in the past. */
  at(time: number, run: () => void): Cancelable {
    const entry: Scheduled = { at: Math.max(time, this.now), order: this.#order++, run, canceled: false };
    push(this.#heap, entry);
    return {
      cancel: () => {
        entry.canceled = true;
      },
    };
  }

  after(ms: number, run: () => void): Cancelable {
    return this.at(this.now + ms, run);
  }

  /** Time of the next event, or undefined when nothing is planned. */
  next(): number | undefined {
    for (;;) {
      const [first] = this.#heap;
      if (first === undefined) return undefined;
      if (!first.canceled) return first.at;
      pop(this.#heap);
    }
  }

  /**
   * Runs event after event, each with everything that it sets in motion without time, as long as `goOn` says so and
   * there is one.
   */
  runWhile(goOn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let ended = false;
      const turn = (): void => {
        if (ended) return;
        try {
          ended = this.next() === undefined || !goOn();
          if (ended) resolve();
          else this.#step();
        } catch (error) {
          ended = true;
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      const turns = (): void => {
        if (ended) return;
        for (let i = 0; i < TURNS; i++) setImmediate(turn);
        setImmediate(turns);
      };
      turns();
    });
  }

  #step(): void {
    const entry = pop(this.#heap);
    if (entry === undefined) return;
    this.now = entry.at;
    this.steps++;
    entry.run();
  }
}

/** Node lets every promise that can go on do so between two immediates; several per turn of its loop are faster. */
const TURNS = 50;

function before(a: Scheduled, b: Scheduled): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Scheduled[], entry: Scheduled): void {
  let index = heap.length;
  heap.push(entry);
  while (index > 0) {
    const parent = (index - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || before(above, entry)) break;
    heap[index] = above;
    index = parent;
  }
  heap[index] = entry;
}

function pop(heap: Scheduled[]): Scheduled | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let index = 0;
  for (;;) {
    const left = 2 * index + 1;
    const leftEntry = heap[left];
    if (leftEntry === undefined) break;
    const rightEntry = heap[left + 1];
    const child = rightEntry !== undefined && before(rightEntry, leftEntry) ? left + 1 : left;
    const childEntry = heap[child];
    if (childEntry === undefined || before(last, childEntry)) break;
    heap[index] = childEntry;
    index = child;
  }
  heap[index] = last;
  return top;
}
