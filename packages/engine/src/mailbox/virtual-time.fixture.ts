/**
 * Time for many sleepers at once. The clock moves only when everybody who runs here sleeps, and then to the first of
 * those who wake; so the order of things depends on no real clock, and ten seconds of waiting take none.
 */
export class VirtualTime {
  readonly #clock: { now: number };
  readonly #sleepers: { at: number; n: number; wake: () => void }[] = [];
  #count = 0;
  #running = 0;
  #nobodyRuns: () => void = () => {};

  constructor(clock: { now: number }) {
    this.#clock = clock;
  }

  readonly sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      this.#sleepers.push({ at: this.#clock.now + ms, n: ++this.#count, wake: resolve });
      this.#sleepers.sort((a, b) => a.at - b.at || a.n - b.n);
      this.#stop();
    });

  /** Starts something that may sleep. Only what was started here, or by it, may. */
  start<T>(work: () => Promise<T>): Promise<T> {
    this.#running++;
    return work().finally(() => this.#stop());
  }

  #stop(): void {
    if (--this.#running === 0) this.#nobodyRuns();
  }

  /** Lets time pass until nobody sleeps any more. */
  async pass(): Promise<void> {
    for (;;) {
      if (this.#running > 0) await new Promise<void>((resolve) => (this.#nobodyRuns = resolve));
      const next = this.#sleepers.shift();
      if (next === undefined) return;
      this.#clock.now = Math.max(this.#clock.now, next.at);
      this.#running++;
      next.wake();
    }
  }
}
