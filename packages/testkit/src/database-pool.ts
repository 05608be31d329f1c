import type { DatabaseSync } from 'node:sqlite';
import type { Db, Sql } from '@pmail/engine/sql.ts';
import { databaseTemplate } from './database-template.ts';
import { type Brackets, nodeDb, nodeSql } from './node-sql.ts';

/** A database of a pool with its ports, which keep the statements that they have prepared. */
export interface PooledDatabase {
  database: DatabaseSync;
  sql: Sql;
  db: Db;
}

/** Everything that is done to a pooled database is inside one transaction, so its own transactions are parts of that. */
const INNER: Brackets = {
  begin: 'SAVEPOINT inner',
  commit: 'RELEASE inner',
  rollback: 'ROLLBACK TO inner; RELEASE inner',
};

/**
 * Databases that are used many times and begin each time as they were built: what was done is rolled back as a whole.
 * Preparing statements takes longer than running them, so using a database again saves most of the time of a short run.
 */
export class DatabasePool {
  readonly #make: () => DatabaseSync;
  readonly #free: PooledDatabase[] = [];

  constructor(build: (database: DatabaseSync) => void) {
    this.#make = databaseTemplate(build);
  }

  take(): PooledDatabase {
    const taken = this.#free.pop() ?? this.#new();
    taken.database.exec('BEGIN');
    return taken;
  }

  /** Nobody may hold on to what was taken beyond this. */
  giveBack(taken: PooledDatabase): void {
    taken.database.exec('ROLLBACK');
    this.#free.push(taken);
  }

  #new(): PooledDatabase {
    const database = this.#make();
    return { database, sql: nodeSql(database, INNER), db: nodeDb(database, INNER) };
  }
}
