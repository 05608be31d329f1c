/** Something that can die: an object's instance, a consumer run, a request handler. */
export class Process {
  readonly name: string;
  alive = true;
  readonly #onDeath = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  /** Calls `run` when the process dies; returns how to take that back. */
  onDeath(run: () => void): () => void {
    this.#onDeath.add(run);
    return () => this.#onDeath.delete(run);
  }

  kill(): void {
    if (!this.alive) return;
    this.alive = false;
    for (const run of this.#onDeath) run();
    this.#onDeath.clear();
  }
}

/** Thrown at a crash mark and by everything a dead process still tries; nothing may be done about it. */
export class Crash extends Error {
  override name = 'Crash';
}

/** A call that failed on the way: nobody on this side knows whether it had its effect. */
export class NetworkLost extends Error {
  override name = 'NetworkLost';
}

/** The object that was being called has died. */
export class ObjectReset extends Error {
  override name = 'ObjectReset';
}
