/** Something that can die: an object's instance, a consumer run, a request handler. */
export class Process {
  readonly name: string;
  alive = true;
  /** It runs on somewhere, though another lives in its place. */
  replaced = false;
  /** When the directory was last read for what it does now, by the scheduler's time: how old what it acts on is. */
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
    this.#tell();
  }

  /**
   * Another has taken its place: whoever called it is told that it is gone, its storage is no longer its own, and yet it
   * goes on with what it was doing.
   */
  replace(): void {
    if (!this.alive || this.replaced) return;
    this.replaced = true;
    this.#tell();
  }

  #tell(): void {
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
