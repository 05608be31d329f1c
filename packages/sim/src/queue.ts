import type { Disposition } from '@pmail/engine/consumers/world.ts';
import type { Queue } from '@pmail/engine/ports.ts';
import { Process } from './process.ts';
import type { Universe } from './universe.ts';

/** Time until a message whose consumer died is delivered again. */
const VISIBILITY_MS = 30_000;
/** How long a queue that is paused keeps a message; far less than the real ones do, as a whole run is far shorter. */
const RETENTION_MS = 4 * 60_000;
const BATCH_MAX = 10;

interface Message<T> {
  body: T;
  attempts: number;
  /** In which order the messages were put, and in which life of the queue. */
  order: number;
  life: number;
}

export interface QueueOptions<T> {
  name: string;
  retriesMax: number;
  consume: (process: Process, body: T) => Promise<Disposition>;
  /** Told of what a consumer throws, which the queue takes for a reason to deliver again. */
  threw: (who: string, error: unknown) => void;
  /** What a message is about, for those of which an older one may come after a newer one. */
  about?: (body: T) => string | null;
}

/**
 * A queue that delivers at least once, in any order, and forgets messages when told to. A consumer run takes up to ten
 * and acknowledges each by itself, so dying in the middle gives back the rest.
 */
export class SimQueue<T> {
  readonly name: string;
  readonly #universe: Universe;
  readonly #options: QueueOptions<T>;
  #waiting = 0;
  #generation = 0;
  #order = 0;
  #life = 0;
  #ready: Message<T>[] = [];
  #running = false;
  #pausedAt: number | null = null;
  #held: { message: Message<T>; since: number }[] = [];
  /** By what it is about, the newest message that was consumed. */
  readonly #newest = new Map<string, number>();
  readonly running = new Set<Process>();
  deadLetters = 0;

  constructor(universe: Universe, options: QueueOptions<T>) {
    this.#universe = universe;
    this.name = options.name;
    this.#options = options;
  }

  /** Messages that are somewhere on their way. */
  get length(): number {
    return this.#waiting;
  }

  producer(process: Process): Queue<T> & { sendAll: (bodies: readonly T[]) => Promise<void> } {
    const call = (effect: () => void): Promise<void> =>
      this.#universe.call(process, 'enqueue', `send to ${this.name}`, effect);
    return {
      send: (body, delayMs = 0) => call(() => this.put(body, delayMs)),
      sendAll: (bodies) =>
        call(() => {
          for (const body of bodies) this.put(body);
        }),
    };
  }

  put(body: T, delayMs = 0): void {
    const order = ++this.#order;
    if (this.#universe.chance('queue_drop')) {
      this.#universe.log(`dropped after accepting: ${this.name}`);
      return;
    }
    const copies = 1 + (this.#universe.faults.copies ?? (this.#universe.chance('queue_duplicate') ? 1 : 0));
    for (let i = 0; i < copies; i++) {
      this.#schedule({ body, attempts: 0, order, life: this.#life }, delayMs + this.#universe.between(5, 1_500));
    }
  }

  /** Everything that waits is forgotten, as a queue in memory is by a power loss. */
  forget(): void {
    this.#life++;
  }

  /** Nothing is delivered until `resume`. */
  pause(): void {
    this.#universe.log(`paused: ${this.name}`);
    this.#pausedAt ??= this.#universe.scheduler.now;
  }

  /** Delivers again, except what is older than the queue keeps things. */
  resume(): void {
    this.#pausedAt = null;
    const { now } = this.#universe.scheduler;
    for (const { message, since } of this.#held.splice(0)) {
      if (now - since <= RETENTION_MS) this.#arrive(message);
      else {
        this.#waiting--;
        this.#universe.meet('E7 paused');
        this.#universe.log(`kept too long: ${this.name}`);
      }
    }
  }

  #schedule(message: Message<T>, delayMs: number): void {
    this.#waiting++;
    this.#universe.scheduler.after(delayMs, () => {
      if (message.life !== this.#life) this.#waiting--;
      else if (this.#pausedAt === null) this.#arrive(message);
      else this.#held.push({ message, since: this.#universe.scheduler.now });
    });
  }

  #arrive(message: Message<T>): void {
    this.#ready.push(message);
    if (this.#running) return;
    this.#running = true;
    // A moment later, so that messages that come close together make one batch.
    this.#universe.scheduler.after(this.#universe.between(0, 50), () => this.#deliver());
  }

  #deliver(): void {
    this.#running = false;
    const batch = this.#ready.splice(0, BATCH_MAX);
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
      if (left.size > 0 && left.size < batch.length) this.#universe.meet('C8');
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
    this.#noticeOrder(message);
    try {
      return await this.#options.consume(process, structuredClone(message.body));
    } catch (error) {
      this.#options.threw(process.name, error);
      return { kind: 'retry', delay_ms: VISIBILITY_MS };
    }
  }

  #noticeOrder({ body, order }: Message<T>): void {
    const about = this.#options.about?.(body) ?? null;
    if (about === null) return;
    const newest = this.#newest.get(about) ?? 0;
    if (order < newest) this.#universe.meet('C3');
    else this.#newest.set(about, order);
  }

  #again(message: Message<T>, delayMs: number): void {
    this.#waiting--;
    message.attempts++;
    if (message.attempts > (this.#universe.faults.queue_retries_max ?? this.#options.retriesMax)) {
      this.deadLetters++;
      this.#universe.meet('E7 dead letter');
      this.#universe.log(`dead letter: ${this.name}`);
      return;
    }
    this.#schedule(message, delayMs);
  }
}
