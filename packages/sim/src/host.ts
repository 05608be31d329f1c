import type { AlarmClock } from '@pmail/engine/ports.ts';
import type { Sql, SqlValue } from '@pmail/engine/sql.ts';
import type { PooledDatabase } from '@pmail/testkit/database-pool.ts';
import { checkPlatformLimits } from '@pmail/testkit/platform-limits.ts';
import { Crash, ObjectReset, Process, StorageFailed } from './process.ts';
import { type Remembered, remember } from './remembered.ts';
import type { Cancelable } from './scheduler.ts';
import type { Universe } from './universe.ts';

interface Instance<E> {
  process: Process;
  engine: E;
  /** Calls that wait in it. */
  calls: number;
}

/** What an engine must offer to live in a host. */
interface Hosted {
  alarm(): Promise<void>;
}

const ALARM_RETRIES_MAX = 6;

const DUE_SQL = "SELECT COUNT(*) AS n FROM meta WHERE k >= 'alarm:' AND k < 'alarm;' AND CAST(v AS INTEGER) <= ?";

/**
 * A Durable Object: storage that stays, instances that come and go, one platform alarm. At most one instance lives at a
 * time; it is made when somebody calls, and everything it was doing dies with it.
 */
export class Host<E extends Hosted> {
  readonly name: string;
  readonly storage: PooledDatabase;
  /** Storage as a checker reads it, outside any instance. */
  readonly sql: Sql;
  /** What its storage held each time that it was put back, and has forgotten since. */
  readonly forgotten: Remembered[] = [];
  readonly #universe: Universe;
  readonly #create: (process: Process, sql: Sql, alarm: AlarmClock) => E;
  #instance: Instance<E> | undefined;
  /** By the clocks of the service. */
  #alarmAt: number | null = null;
  #alarmEvent: Cancelable | undefined;
  #alarmRetries = 0;
  /** The platform never runs two alarms of one object at once; one that fires meanwhile waits its turn. */
  #alarmRunning = false;
  #alarmWaiting = false;
  #generation = 0;
  #whenServed: (() => void) | undefined;

  constructor(
    universe: Universe,
    name: string,
    storage: PooledDatabase,
    create: (process: Process, sql: Sql, alarm: AlarmClock) => E,
  ) {
    this.#universe = universe;
    this.name = name;
    this.storage = storage;
    this.#create = create;
    this.sql = storage.sql;
    universe.onClock(() => this.#schedule());
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
      instance.calls++;
      const work = async (): Promise<void> => {
        try {
          const value = await run(instance.engine);
          if (instance.process.alive && !instance.process.replaced) {
            resolve(structuredClone(value));
            this.#tellServed();
          }
        } catch (error) {
          if (error instanceof Crash) died();
          else reject(error instanceof Error ? error : new Error(String(error)));
        } finally {
          instance.calls--;
          forget();
        }
      };
      work().catch(reject);
    });
  }

  /** Tells once, when an instance has next done a call to its end. */
  whenServed(tell: () => void): void {
    this.#whenServed = tell;
  }

  #tellServed(): void {
    const tell = this.#whenServed;
    this.#whenServed = undefined;
    tell?.();
  }

  /** The instance dies where it stands; its storage stays. */
  kill(): void {
    this.#instance?.process.kill();
    this.#instance = undefined;
  }

  /**
   * The platform moves the object: whatever waits in it is cut off.
   *
   * @param lingers whether the old instance goes on somewhere with what it was doing, without its storage
   */
  evict(lingers: boolean): void {
    this.#universe.log(`evicted${lingers ? ' and lingering' : ''}: ${this.name}`);
    if ((this.#instance?.calls ?? 0) > 0) this.#universe.meet('P1');
    if (lingers) this.#instance?.process.replace();
    else this.#instance?.process.kill();
    this.#instance = undefined;
  }

  get restored(): boolean {
    return this.forgotten.length > 0;
  }

  /** Remembers the storage as it is now, for `restore`. */
  mayBeRestored(): void {
    this.storage.database.exec('SAVEPOINT restore_point');
  }

  /** An operator puts the storage back to what was remembered; whatever runs in the object dies. */
  restore(): void {
    this.#universe.log(`RESTORED: ${this.name}`);
    this.kill();
    this.forgotten.push(remember(this.sql));
    this.storage.database.exec('ROLLBACK TO restore_point');
    this.#setAlarm(this.#universe.now);
  }

  #live(): Instance<E> {
    if (this.#instance?.process.alive === true && this.#universe.chance('evict')) {
      this.evict(this.#universe.random() < 0.5);
    }
    if (this.#instance?.process.alive !== true) {
      const process = new Process(`${this.name}#${++this.#generation}`);
      const engine = this.#create(process, this.#guarded(process), this.#alarmClock(process));
      this.#instance = { process, engine, calls: 0 };
    }
    return this.#instance;
  }

  /** Storage for one instance: one that is gone can neither read nor write, and the platform's limits hold. */
  #guarded(process: Process): Sql {
    const universe = this.#universe;
    let inside = false;
    const check = (query: string, bindings: SqlValue[]): void => {
      if (process.replaced) universe.meet('P4');
      if (!process.alive || process.replaced) throw new Crash('storage that is no longer its own');
      checkPlatformLimits(bindings);
      if (inside && universe.statementThrows(query)) {
        universe.log(`storage throws: ${this.name}`);
        throw new StorageFailed(this.name);
      }
    };
    return {
      all: (query, ...bindings) => {
        check(query, bindings);
        return this.sql.all(query, ...bindings);
      },
      first: (query, ...bindings) => {
        check(query, bindings);
        return this.sql.first(query, ...bindings);
      },
      run: (query, ...bindings) => {
        check(query, bindings);
        this.sql.run(query, ...bindings);
      },
      transaction: (body) => {
        check('', []);
        const alarmBefore = this.#alarmAt;
        inside = true;
        try {
          return this.sql.transaction(body);
        } catch (error) {
          // The alarm is part of the storage, so it goes back with the rest.
          this.#setAlarm(alarmBefore);
          throw error;
        } finally {
          inside = false;
        }
      },
    };
  }

  #alarmClock(process: Process): AlarmClock {
    return {
      set: (at) => {
        if (!process.alive || process.replaced) throw new Crash('an alarm that is no longer its own');
        this.#setAlarm(at);
      },
    };
  }

  #setAlarm(at: number | null): void {
    if (at === this.#alarmAt && this.#alarmEvent !== undefined) return;
    this.#alarmAt = at;
    this.#schedule();
  }

  #schedule(): void {
    const universe = this.#universe;
    this.#alarmEvent?.cancel();
    this.#alarmEvent = undefined;
    if (this.#alarmAt === null) return;
    const late = universe.chance('alarm_late') ? universe.between(1_000, 60_000) : 0;
    if (late > 0) universe.meet('E5 late');
    this.#alarmEvent = universe.scheduler.at(this.#alarmAt - universe.skew + late, () => this.#fire());
  }

  #fire(): void {
    this.#alarmEvent = undefined;
    this.#alarmAt = null;
    if (this.#universe.chance('alarm_lost')) {
      this.#universe.log(`alarm lost: ${this.name}`);
      this.#universe.meet('E5 late');
      return;
    }
    this.fireAlarm();
    if (this.#universe.chance('alarm_twice')) {
      this.#universe.meet('E5 twice');
      this.#universe.scheduler.after(this.#universe.between(1, 5_000), () => this.fireAlarm());
    }
  }

  /** The platform calls the alarm; when it threw or died it tries again, a few times, then gives up. */
  fireAlarm(): void {
    if (this.#alarmRunning) {
      this.#alarmWaiting = true;
      return;
    }
    this.#alarmRunning = true;
    if ((this.sql.first<{ n: number }>(DUE_SQL, this.#universe.now)?.n ?? 0) > 1) this.#universe.meet('E6');
    const work = async (): Promise<void> => {
      try {
        await this.invoke((engine) => engine.alarm());
        this.#alarmRetries = 0;
      } catch {
        this.#again();
      } finally {
        this.#alarmRunning = false;
        if (this.#alarmWaiting) this.#universe.scheduler.after(1, () => this.fireAlarm());
        this.#alarmWaiting = false;
      }
    };
    work().catch((error: unknown) => this.#universe.log(`alarm broke: ${String(error)}`));
  }

  #again(): void {
    this.#alarmRetries++;
    if (this.#alarmRetries > ALARM_RETRIES_MAX || this.#universe.chance('alarm_gives_up')) {
      this.#alarmRetries = 0;
      this.#universe.log(`alarm given up: ${this.name}`);
      this.#universe.meet('E5 retries');
      return;
    }
    this.#universe.scheduler.after(2_000 * this.#alarmRetries, () => this.fireAlarm());
  }
}
