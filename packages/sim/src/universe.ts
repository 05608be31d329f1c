import type { MarkName } from '@pmail/engine/marks.ts';
import type { CaseId } from './case-list.ts';
import type { ChanceOf, Faults } from './faults.ts';
import { NO_FAULTS } from './faults.ts';
import { type Hook, Plan, type PlannedFault } from './planned.ts';
import { Crash, NetworkLost, type Process } from './process.ts';
import { type Random, Scheduler, seededRandom } from './scheduler.ts';
import { caseOfCall, caseOfWord, casesOfCrash } from './watch.ts';

export const START = Date.UTC(2026, 9, 24, 20, 0, 0);

/** One kind of call, by which of its faults can hit it. */
export type CallKind = 'call' | 'store' | 'db' | 'enqueue';

/** Calls with such a label fail until then, by the scheduler's time. */
interface Outage {
  label: RegExp;
  until: number;
  cases: readonly CaseId[];
}

/**
 * What one schedule runs in: the clock, the source of chance, the faults, and the record of everything that happened.
 */
export class Universe {
  readonly scheduler: Scheduler;
  readonly random: Random;
  faults: Faults;
  readonly plan: Plan;
  readonly history: string[] = [];
  readonly marks = new Map<MarkName, number>();
  /** Marks at which somebody died, and how often. */
  readonly crashes = new Map<MarkName, number>();
  /** Kinds of fault that really happened, for the report of pairs. */
  readonly happened = new Set<string>();
  /** Cases that were met, and how often. */
  readonly cases = new Map<CaseId, number>();
  readonly #start: number;
  #skew = 0;
  /** Whether anybody ever turned the clocks. */
  turned = false;
  readonly #clockListeners: (() => void)[] = [];
  readonly #hooks: Hook[] = [];
  #outages: Outage[] = [];
  #calm = false;

  constructor(seed: number, faults: Faults, planned: readonly PlannedFault[] = [], start = START) {
    this.random = seededRandom(seed);
    this.faults = faults;
    this.plan = new Plan(planned);
    this.#start = start;
    this.scheduler = new Scheduler(start);
  }

  /** What the clocks of the service show. The scheduler's own time goes on whatever they show. */
  get now(): number {
    return this.scheduler.now + this.#skew;
  }

  /** How far the clocks are from the scheduler's time. */
  get skew(): number {
    return this.#skew;
  }

  /** Somebody puts the clocks on, or back. */
  turnClocks(ms: number): void {
    this.#skew += ms;
    this.turned = true;
    this.meet(ms > 0 ? 'K1' : 'K2');
    this.log(`CLOCKS turned by ${ms / 1_000} s`);
    for (const listener of this.#clockListeners) listener();
  }

  onClock(listener: () => void): void {
    this.#clockListeners.push(listener);
  }

  log(line: string): void {
    this.history.push(`${((this.scheduler.now - this.#start) / 1000).toFixed(3).padStart(11)} ${line}`);
  }

  /** What an engine or consumer says; some of it means that a case has come to it. */
  hear(who: string, word: string): void {
    this.log(`  [${who}] ${word}`);
    this.meet(caseOfWord(word));
  }

  meet(...ids: (CaseId | undefined)[]): void {
    for (const id of ids) {
      if (id !== undefined) this.cases.set(id, (this.cases.get(id) ?? 0) + 1);
    }
  }

  chance(fault: ChanceOf): boolean {
    const likelihood = this.faults[fault];
    if (likelihood === 0 || this.random() >= likelihood) return false;
    this.happened.add(fault);
    return true;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.random() * items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  between(low: number, high: number): number {
    return Math.floor(low + this.random() * (high - low + 1));
  }

  /** Everything goes well from here on, but for a crash at an exact place: what is reached late is died at late. */
  calm(): void {
    this.faults = { ...NO_FAULTS, crash_at: this.faults.crash_at };
    this.#outages = [];
    this.#calm = true;
  }

  /** Calls with such a label fail for so long. */
  outage(label: RegExp, ms: number, cases: readonly CaseId[]): void {
    this.happened.add('outage');
    this.log(`DOWN for ${ms / 1_000} s: ${label.source}`);
    this.#outages.push({ label, until: this.scheduler.now + ms, cases });
  }

  #isDown(label: string): boolean {
    if (this.#outages.length === 0) return false;
    const outage = this.#outages.find((one) => one.until > this.scheduler.now && one.label.test(label));
    if (outage !== undefined) this.meet(...outage.cases);
    return outage !== undefined;
  }

  /** Does something the moment a mark is reached for the n-th time, beside whoever reached it. */
  atMark(mark: MarkName, nth: number, run: () => void): void {
    this.#hooks.push({ mark, nth, run });
  }

  /** A crash mark reached by a process. */
  mark(process: Process, name: MarkName): void {
    if (!process.alive) throw new Crash(name);
    const count = (this.marks.get(name) ?? 0) + 1;
    this.marks.set(name, count);
    for (const hook of this.#hooks) {
      if (hook.mark === name && hook.nth === count) this.scheduler.after(0, hook.run);
    }
    if (!this.#dies(name, count)) return;
    this.happened.add('crash');
    this.crashes.set(name, (this.crashes.get(name) ?? 0) + 1);
    this.meet(...casesOfCrash(name));
    this.log(`CRASH ${process.name} at ${name}`);
    process.kill();
    throw new Crash(name);
  }

  /** Whether a statement inside a transaction of an object throws. */
  statementThrows(query: string): boolean {
    return (!this.#calm && this.plan.throws(query)) || this.chance('storage_throws');
  }

  #dies(name: MarkName, count: number): boolean {
    if (!this.#calm && this.plan.crashes(name, count)) return true;
    const { crash_at: planned } = this.faults;
    return planned === null ? this.chance('crash') : planned.mark === name && planned.nth === count;
  }

  /**
   * A call that takes time and can fail on either way. The effect runs at the far end; the caller hears of it only if
   * it is still alive.
   */
  call<T>(from: Process, kind: CallKind, label: string, effect: () => Promise<T> | T): Promise<T> {
    if (!from.alive) return new Promise(() => {});
    const planned = this.#calm ? undefined : this.plan.harmOf(label);
    const late = planned?.ms ?? 0;
    return new Promise<T>((resolve, reject) => {
      const answer = (deliver: () => void, ms = 0): void => {
        this.scheduler.after(this.between(1, 20) + ms, () => {
          if (from.alive) deliver();
        });
      };
      const fail = (harm: 'lost' | 'answer_lost'): void => {
        this.log(`${harm === 'lost' ? 'lost' : 'answer lost'}: ${label}`);
        this.meet(caseOfCall(from.name, label, harm));
        answer(() => reject(new NetworkLost(label)));
      };
      this.scheduler.after(this.between(1, 20) + (planned?.harm === 'late' ? late : 0), () => {
        if (planned?.harm === 'lost' || this.#isDown(label) || this.chance(`${kind}_lost`)) {
          fail('lost');
          return;
        }
        const run = async (): Promise<void> => {
          try {
            const value = await effect();
            const answerFault = kind === 'call' ? 'answer_lost' : (`${kind}_answer_lost` as const);
            if (planned?.harm === 'answer_lost' || this.chance(answerFault)) fail('answer_lost');
            else answer(() => resolve(value), planned?.harm === 'answer_late' ? late : this.#staleness(kind));
          } catch (error) {
            answer(() => reject(error instanceof Error ? error : new Error(String(error))));
          }
        };
        run().catch(reject);
      });
    });
  }

  /** How much later than usual the shared database answers. */
  #staleness(kind: CallKind): number {
    if (kind !== 'db' || !this.chance('db_stale')) return 0;
    this.meet('S13 stale');
    return this.between(2_000, 25_000);
  }

  /** Waits in virtual time; a dead process waits for ever. */
  sleep(process: Process, ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.scheduler.after(ms, () => {
        if (process.alive) resolve();
      });
    });
  }
}
