import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Db, Sql, SqlValue } from '@pmail/engine/sql.ts';
import { databaseTemplate } from './database-template.ts';

/** The SQL ports over node:sqlite, so that engines and directory queries run unchanged outside workerd. */

const MIGRATIONS = new URL('../../../migrations/', import.meta.url);

type Row = Record<string, SqlValue>;

/** A prepared statement. Naming each value of each row takes node longer than many a query, so rows get their names here. */
class Query {
  readonly #statement: StatementSync;
  #names: string[] = [];

  constructor(database: DatabaseSync, query: string) {
    this.#statement = database.prepare(query);
    this.#statement.setReturnArrays(true);
  }

  all(bindings: SqlValue[]): Row[] {
    const rows = this.#statement.all(...bindings) as unknown as SqlValue[][];
    // `SELECT *` has more columns once a step of the schema has added one.
    if (rows[0] !== undefined && rows[0].length !== this.#names.length) {
      this.#names = this.#statement.columns().map(({ name }) => name);
    }
    return rows.map((values) => {
      const row: Row = {};
      for (let n = 0; n < values.length; n++) row[this.#names[n] as string] = values[n] as SqlValue;
      return row;
    });
  }

  run(bindings: SqlValue[]): void {
    this.#statement.run(...bindings);
  }
}

function prepared(database: DatabaseSync): (query: string) => Query {
  const queries = new Map<string, Query>();
  return (text) => {
    let query = queries.get(text);
    if (query === undefined) {
      query = new Query(database, text);
      queries.set(text, query);
    }
    return query;
  };
}

/** How a transaction is begun, kept and undone. */
export interface Brackets {
  begin: string;
  commit: string;
  rollback: string;
}

const WHOLE: Brackets = { begin: 'BEGIN', commit: 'COMMIT', rollback: 'ROLLBACK' };

/** Storage of one object. */
export function nodeSql(database: DatabaseSync, { begin, commit, rollback }: Brackets = WHOLE): Sql {
  const prepare = prepared(database);
  let inside = false;
  return {
    all: <T extends object>(query: string, ...bindings: SqlValue[]) => prepare(query).all(bindings) as T[],
    first: <T extends object>(query: string, ...bindings: SqlValue[]) => {
      // `all` and not `get`: a statement with RETURNING must run to its end to have its whole effect.
      const [row] = prepare(query).all(bindings);
      return row as T | undefined;
    },
    run: (query, ...bindings) => {
      prepare(query).run(bindings);
    },
    transaction: (body) => {
      if (inside) throw new Error('transactions are not nested');
      inside = true;
      database.exec(begin);
      try {
        const result = body();
        database.exec(commit);
        return result;
      } catch (error) {
        database.exec(rollback);
        throw error;
      } finally {
        inside = false;
      }
    },
  };
}

/** The shared database. Each batch is one transaction, as in D1. */
export function nodeDb(database: DatabaseSync, { begin, commit, rollback }: Brackets = WHOLE): Db {
  const prepare = prepared(database);
  return {
    batch: (statements) => {
      database.exec(begin);
      try {
        const results = statements.map(({ sql, bindings }) => prepare(sql).all(bindings));
        database.exec(commit);
        return Promise.resolve(results);
      } catch (error) {
        database.exec(rollback);
        return Promise.reject(error instanceof Error ? error : new Error(String(error)));
      }
    },
  };
}

/** Applies every migration of the directory. */
export function migrateDirectory(database: DatabaseSync): void {
  const schema = readdirSync(MIGRATIONS)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => readFileSync(new URL(name, MIGRATIONS), 'utf8'))
    .join('\n');
  database.exec(schema);
}

/** An empty directory. */
export const memoryDirectory: () => DatabaseSync = databaseTemplate(migrateDirectory);

/** Storage of one object, in memory. */
export function memorySql(): Sql {
  return nodeSql(new DatabaseSync(':memory:'));
}
