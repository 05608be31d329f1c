/** A clock that stands until it is told to go on. */
export class VirtualClock {
  #now: number;
  #timers: { at: number; run: () => void }[] = [];

  constructor(now = 0) {
    this.#now = now;
  }

  readonly now = (): number => this.#now;

  readonly after = (ms: number, run: () => void): (() => void) => {
    const timer = { at: this.#now + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  };

  /** When the next timer is due; null without one. */
  get next(): number | null {
    return this.#timers.reduce<number | null>((least, { at }) => (least === null || at < least ? at : least), null);
  }

  /** Lets time go by. Each timer runs at its own time, with everything it sets off done before the next. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (let at = this.next; at !== null && at <= until; at = this.next) {
      this.#now = at;
      const due = this.#timers.filter((timer) => timer.at === at);
      this.#timers = this.#timers.filter((timer) => timer.at !== at);
      for (const { run } of due) run();
      await idle();
    }
    this.#now = Math.max(this.#now, until);
  }
}

/** Resolves when nothing more can happen without time going by: every promise that could go on has done so. */
export function idle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
