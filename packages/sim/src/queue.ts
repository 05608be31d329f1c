import type { Disposition } from '@pmail/engine/consumers/world.ts';
import type { Queue } from '@pmail/engine/ports.ts';
import { Process } from './process.ts';
import type { Universe } from './universe.ts';

/** Time until a message whose consumer died is delivered again. */
const VISIBILITY_MS = 30_000;

interface Message<T> {
  body: T;
  attempts: number;
}

/**
 * A queue that delivers at least once, in any order, and forgets messages when told to. A consumer run takes up to ten
 * and acknowledges each by itself, so dying in the middle gives back the rest.
 */
export class SimQueue<T> {
  readonly name: string;
  readonly #universe: Universe;
  readonly #consume: (process: Process, body: T) => Promise<Disposition>;
  readonly #retriesMax: number;
  #waiting = 0;
  #generation = 0;
  #ready: Message<T>[] = [];
  #running = false;
  #paused = false;
  readonly running = new Set<Process>();
  deadLetters = 0;

  constructor(
    universe: Universe,
    name: string,
    retriesMax: number,
    consume: (process: Process, body: T) => Promise<Disposition>,
  ) {
    this.#universe = universe;
    this.name = name;
    this.#retriesMax = retriesMax;
    this.#consume = consume;
  }

  /** Messages that are somewhere on their way. */
  get length(): number {
    return this.#waiting;
  }

  producer(process: Process): Queue<T> {
    return {
      send: (body, delayMs = 0) =>
        this.#universe.call(process, 'enqueue', `send to ${this.name}`, () => this.put(body, delayMs)),
    };
  }

  put(body: T, delayMs = 0): void {
    if (this.#universe.chance('queue_drop')) {
      this.#universe.log(`dropped after accepting: ${this.name}`);
      return;
    }
    const copies = 1 + (this.#universe.faults.copies ?? (this.#universe.chance('queue_duplicate') ? 1 : 0));
    for (let i = 0; i < copies; i++) this.#schedule({ body, attempts: 0 }, delayMs + this.#universe.between(5, 1_500));
  }

  /** Everything that waits is forgotten, as a queue in memory is by a power loss. */
  forget(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
  }

  #schedule(message: Message<T>, delayMs: number): void {
    this.#waiting++;
    this.#universe.scheduler.after(delayMs, () => {
      if (this.#paused) {
        this.#waiting--;
        return;
      }
      this.#ready.push(message);
      if (this.#running) return;
      this.#running = true;
      // A moment later, so that messages that come close together make one batch.
      this.#universe.scheduler.after(this.#universe.between(0, 50), () => this.#deliver());
    });
  }

  #deliver(): void {
    this.#running = false;
    const batch = this.#ready.splice(0, 10);
    if (this.#ready.length > 0) {
      this.#running = true;
      this.#universe.scheduler.after(1, () => this.#deliver());
    }
    if (batch.length === 0) return;
    const process = new Process(`${this.name} run ${++this.#generation}`);
    this.running.add(process);
    const left = new Set(batch);
    process.onDeath(() => {
      this.running.delete(process);
      for (const message of left) this.#again(message, VISIBILITY_MS);
      left.clear();
    });
    const work = async (): Promise<void> => {
      for (const message of batch) {
        const disposition = await this.#one(process, message);
        if (!process.alive) return;
        left.delete(message);
        if (disposition.kind === 'ack') this.#waiting--;
        else this.#again(message, disposition.delay_ms);
      }
      this.running.delete(process);
    };
    work().catch((error: unknown) => this.#universe.log(`queue broke: ${String(error)}`));
  }

  async #one(process: Process, message: Message<T>): Promise<Disposition> {
    try {
      return await this.#consume(process, structuredClone(message.body));
    } catch {
      return { kind: 'retry', delay_ms: VISIBILITY_MS };
    }
  }

  #again(message: Message<T>, delayMs: number): void {
    this.#waiting--;
    message.attempts++;
    if (message.attempts > this.#retriesMax) {
      this.deadLetters++;
      this.#universe.log(`dead letter: ${this.name}`);
      return;
    }
    this.#schedule(message, delayMs);
  }
}
