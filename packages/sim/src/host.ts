import { DatabaseSync } from 'node:sqlite';
import type { AlarmClock } from '@pmail/engine/ports.ts';
import type { Sql } from '@pmail/engine/sql.ts';
import { nodeSql } from '@pmail/testkit/node-sql.ts';
import { Crash, ObjectReset, Process } from './process.ts';
import type { Cancelable } from './scheduler.ts';
import type { Universe } from './universe.ts';

interface Instance<E> {
  process: Process;
  engine: E;
}

/** What an engine must offer to live in a host. */
interface Hosted {
  alarm(): Promise<void>;
}

const ALARM_RETRIES_MAX = 6;

/**
 * A Durable Object: storage that stays, instances that come and go, one platform alarm. At most one instance lives at a
 * time; it is made when somebody calls, and everything it was doing dies with it.
 */
export class Host<E extends Hosted> {
  readonly name: string;
  readonly database = new DatabaseSync(':memory:');
  /** Storage as a checker reads it, outside any instance. */
  readonly sql: Sql;
  readonly #universe: Universe;
  readonly #create: (process: Process, sql: Sql, alarm: AlarmClock) => E;
  #instance: Instance<E> | undefined;
  #alarmAt: number | null = null;
  #alarmEvent: Cancelable | undefined;
  #alarmRetries = 0;
  /** The platform never runs two alarms of one object at once; one that fires meanwhile waits its turn. */
  #alarmRunning = false;
  #alarmWaiting = false;
  #generation = 0;

  constructor(universe: Universe, name: string, create: (process: Process, sql: Sql, alarm: AlarmClock) => E) {
    this.#universe = universe;
    this.name = name;
    this.#create = create;
    this.sql = nodeSql(this.database);
  }

  get alarmAt(): number | null {
    return this.#alarmAt;
  }

  /** Runs a call on the live instance; rejects when the instance dies before it is done. */
  invoke<T>(run: (engine: E) => Promise<T> | T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const died = (): void => reject(new ObjectReset(this.name));
      let instance: Instance<E>;
      try {
        instance = this.#live();
      } catch {
        died();
        return;
      }
      const forget = instance.process.onDeath(died);
      const work = async (): Promise<void> => {
        try {
          const value = await run(instance.engine);
          if (instance.process.alive) resolve(structuredClone(value));
        } catch (error) {
          if (error instanceof Crash) died();
          else reject(error instanceof Error ? error : new Error(String(error)));
        } finally {
          forget();
        }
      };
      work().catch(reject);
    });
  }

  /** The instance dies where it stands; its storage stays. */
  kill(): void {
    this.#instance?.process.kill();
    this.#instance = undefined;
  }

  #live(): Instance<E> {
    if (this.#instance?.process.alive === true && this.#universe.chance('evict')) {
      this.#universe.log(`evicted: ${this.name}`);
      this.kill();
    }
    if (this.#instance?.process.alive !== true) {
      const process = new Process(`${this.name}#${++this.#generation}`);
      const engine = this.#create(process, this.#guarded(process), this.#alarmClock(process));
      this.#instance = { process, engine };
    }
    return this.#instance;
  }

  /** Storage for one instance: a dead one can neither read nor write. */
  #guarded(process: Process): Sql {
    const check = (): void => {
      if (!process.alive) throw new Crash('storage of a dead instance');
    };
    return {
      all: (query, ...bindings) => {
        check();
        return this.sql.all(query, ...bindings);
      },
      first: (query, ...bindings) => {
        check();
        return this.sql.first(query, ...bindings);
      },
      run: (query, ...bindings) => {
        check();
        this.sql.run(query, ...bindings);
      },
      transaction: (body) => {
        check();
        const alarmBefore = this.#alarmAt;
        try {
          return this.sql.transaction(body);
        } catch (error) {
          // The alarm is part of the storage, so it goes back with the rest.
          this.#setAlarm(alarmBefore);
          throw error;
        }
      },
    };
  }

  #alarmClock(process: Process): AlarmClock {
    return {
      set: (at) => {
        if (!process.alive) throw new Crash('alarm of a dead instance');
        this.#setAlarm(at);
      },
    };
  }

  #setAlarm(at: number | null): void {
    if (at === this.#alarmAt && this.#alarmEvent !== undefined) return;
    this.#alarmEvent?.cancel();
    this.#alarmEvent = undefined;
    this.#alarmAt = at;
    if (at === null) return;
    const late = this.#universe.chance('alarm_late') ? this.#universe.between(1_000, 60_000) : 0;
    this.#alarmEvent = this.#universe.scheduler.at(at + late, () => this.#fire());
  }

  #fire(): void {
    this.#alarmEvent = undefined;
    this.#alarmAt = null;
    if (this.#universe.chance('alarm_lost')) {
      this.#universe.log(`alarm lost: ${this.name}`);
      return;
    }
    this.#run();
    if (this.#universe.chance('alarm_twice')) {
      this.#universe.scheduler.after(this.#universe.between(1, 5_000), () => this.#run());
    }
  }

  /** The platform tries an alarm that threw or died again, a few times, then gives up. */
  #run(): void {
    if (this.#alarmRunning) {
      this.#alarmWaiting = true;
      return;
    }
    this.#alarmRunning = true;
    const work = async (): Promise<void> => {
      try {
        await this.invoke((engine) => engine.alarm());
        this.#alarmRetries = 0;
      } catch {
        this.#alarmRetries++;
        if (this.#alarmRetries <= ALARM_RETRIES_MAX) {
          this.#universe.scheduler.after(2_000 * this.#alarmRetries, () => this.#run());
        } else this.#alarmRetries = 0;
      } finally {
        this.#alarmRunning = false;
        if (this.#alarmWaiting) this.#universe.scheduler.after(1, () => this.#run());
        this.#alarmWaiting = false;
      }
    };
    work().catch((error: unknown) => this.#universe.log(`alarm broke: ${String(error)}`));
  }
}
