import type { MarkName } from '@pmail/engine/marks.ts';
import type { ChanceOf, Faults } from './faults.ts';
import { NO_FAULTS } from './faults.ts';
import { Crash, NetworkLost, type Process } from './process.ts';
import { type Random, Scheduler, seededRandom } from './scheduler.ts';

export const START = Date.UTC(2026, 9, 24, 20, 0, 0);

/** One kind of call, by which of its faults can hit it. */
export type CallKind = 'call' | 'store' | 'db' | 'enqueue';

/**
 * What one schedule runs in: the clock, the source of chance, the faults, and the record of everything that happened.
 */
export class Universe {
  readonly scheduler = new Scheduler(START);
  readonly random: Random;
  faults: Faults;
  readonly history: string[] = [];
  readonly marks = new Map<MarkName, number>();
  /** Kinds of fault that really happened, for the report of pairs. */
  readonly happened = new Set<string>();

  constructor(seed: number, faults: Faults) {
    this.random = seededRandom(seed);
    this.faults = faults;
  }

  get now(): number {
    return this.scheduler.now;
  }

  log(line: string): void {
    this.history.push(`${((this.now - START) / 1000).toFixed(3).padStart(11)} ${line}`);
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

  /** Everything goes well from here on. */
  calm(): void {
    this.faults = NO_FAULTS;
  }

  /** A crash mark reached by a process. */
  mark(process: Process, name: MarkName): void {
    if (!process.alive) throw new Crash(name);
    const count = (this.marks.get(name) ?? 0) + 1;
    this.marks.set(name, count);
    const { crash_at: planned } = this.faults;
    const dies = planned === null ? this.chance('crash') : planned.mark === name && planned.nth === count;
    if (!dies) return;
    this.happened.add(`crash`);
    this.log(`CRASH ${process.name} at ${name}`);
    process.kill();
    throw new Crash(name);
  }

  /**
   * A call that takes time and can fail on either way. The effect runs at the far end; the caller hears of it only if
   * it is still alive.
   */
  call<T>(from: Process, kind: CallKind, label: string, effect: () => Promise<T> | T): Promise<T> {
    if (!from.alive) return new Promise(() => {});
    return new Promise<T>((resolve, reject) => {
      const answer = (deliver: () => void): void => {
        this.scheduler.after(this.between(1, 20), () => {
          if (from.alive) deliver();
        });
      };
      this.scheduler.after(this.between(1, 20), () => {
        if (this.chance(`${kind}_lost`)) {
          this.log(`lost: ${label}`);
          answer(() => reject(new NetworkLost(label)));
          return;
        }
        const run = async (): Promise<void> => {
          try {
            const value = await effect();
            const answerFault = kind === 'call' ? 'answer_lost' : (`${kind}_answer_lost` as const);
            if (this.chance(answerFault)) {
              this.log(`answer lost: ${label}`);
              answer(() => reject(new NetworkLost(label)));
            } else answer(() => resolve(value));
          } catch (error) {
            answer(() => reject(error instanceof Error ? error : new Error(String(error))));
          }
        };
        run().catch(reject);
      });
    });
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
