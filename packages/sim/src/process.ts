/** Something that can die: an object's instance, a consumer run, a request handler. */
export class Process {
  readonly name: string;
  alive = true;
  /** When the directory was last read for it, by the scheduler's time: how old what it acts on is. */
  readAt: number | null = null;
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

/** A statement of an object's storage failed; its transaction is rolled back, and the instance lives on. */
export class StorageFailed extends Error {
  override name = 'StorageFailed';
}
