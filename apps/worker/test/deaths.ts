import { MARKS, type MarkName } from '@pmail/engine/marks.ts';
import { vi } from 'vitest';
import { IdentityMailbox, TenantQuota } from '../src/index.ts';
import { marks } from '../src/marks.ts';

/** Deaths at marks: an object whose instance is aborted, a consumer that says nothing more to its queue. */

/** Whether what an object has written until the mark is on disk when it dies. A consumer has no disk. */
export type When = 'before the commit' | 'after the commit' | 'as a consumer';

export interface Way {
  mark: MarkName;
  when: When;
}

/** Marks that a send passes on its way; those of what comes afterwards have a file of their own. */
const OF_A_SEND = /^(submit|dispatch|consume|claim|outcome|round|quota_task|quota|cancel|resolve)\./;
const IN_CONSUMERS = /^(consume\.|event\.(?!in_transaction)|webhook\.|inbound\.stored)/;

/** The ways of dying that a file's tests walk, so that its last test can hold them against the list of all marks. */
export class Walk {
  readonly #left: Set<MarkName>;

  constructor(part: 'a send' | 'what comes afterwards') {
    this.#left = new Set(MARKS.filter((name) => OF_A_SEND.test(name) === (part === 'a send')));
  }

  at(...names: MarkName[]): Way[] {
    for (const name of names) this.#left.delete(name);
    return names.flatMap((mark): Way[] =>
      IN_CONSUMERS.test(mark)
        ? [{ mark, when: 'as a consumer' }]
        : (['before the commit', 'after the commit'] as const).map((when) => ({ mark, when })),
    );
  }

  /** Marks that no test has walked. */
  left(): MarkName[] {
    return [...this.#left];
  }
}

export class Died extends Error {
  override name = 'Died';
}

/** Marks inside a transaction, without having it in their names. */
const INSIDE: readonly MarkName[] = ['claim.expired'];
/** Marks of an attempt at an endpoint, which runs on its own: with it no consumer dies. */
const ATTEMPT: readonly MarkName[] = ['webhook.begun', 'webhook.answered', 'webhook.recorded'];

export class Deaths {
  #next: { mark: MarkName; when: When; left: number } | null = null;
  readonly #dying = new WeakSet<DurableObjectState>();
  /** Where something has died, in order. */
  readonly at: MarkName[] = [];
  /** Whether the consumer that is at work has died. */
  consumer = false;

  /** Until mocks are restored. */
  install(): void {
    vi.spyOn(marks, 'reached').mockImplementation((name, object) => this.#reach(name, object));
    for (const prototype of [IdentityMailbox.prototype, TenantQuota.prototype]) this.#holdAnswers(prototype as never);
  }

  plan(mark: MarkName, when: When, nth = 1): void {
    this.#next = { mark, when, left: nth };
  }

  #reach(name: MarkName, object: DurableObjectState | null): void {
    if (object !== null && this.#dying.has(object)) throw new Died(name);
    if (this.#next?.mark !== name || --this.#next.left > 0) return;
    const { when } = this.#next;
    this.#next = null;
    this.at.push(name);
    if (object === null) this.consumer = !ATTEMPT.includes(name);
    else if (when === 'before the commit') object.abort('killed');
    else {
      this.#dying.add(object);
      object.waitUntil(end(object));
      // Its transaction still commits; what comes after it finds the instance dead.
      if (name.endsWith('.in_transaction') || INSIDE.includes(name)) return;
      withoutStorage(object);
    }
    throw new Died(name);
  }

  /** A dying instance answers nobody: its callers wait until they hear that it has gone. */
  #holdAnswers(prototype: Record<string, (...args: unknown[]) => unknown>): void {
    const dying = this.#dying;
    for (const name of Object.getOwnPropertyNames(prototype).filter((own) => own !== 'constructor')) {
      const own = prototype[name];
      if (typeof own !== 'function') continue;
      vi.spyOn(prototype, name).mockImplementation(async function (this: unknown, ...args: unknown[]) {
        try {
          return await own.apply(this, args);
        } finally {
          if (dying.has((this as { ctx: DurableObjectState }).ctx)) await new Promise(() => {});
        }
      });
    }
  }
}

/** In the next moment, when a transaction that was under way has committed: all of it goes to disk, and the instance dies. */
async function end(object: DurableObjectState): Promise<void> {
  await Promise.resolve();
  withoutStorage(object);
  await object.storage.sync();
  object.abort('killed');
}

/** From here on the instance can write nothing, whatever its code does about the exception at the mark. */
function withoutStorage({ storage }: DurableObjectState): void {
  const gone = {
    configurable: true,
    value: () => {
      throw new Died('storage');
    },
  };
  Object.defineProperty(storage.sql, 'exec', gone);
  Object.defineProperty(storage, 'transactionSync', gone);
}
