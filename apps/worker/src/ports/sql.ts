import type { Db, Sql, SqlValue, Statement } from '@pmail/engine/sql.ts';

/** The synchronous SQL port over a Durable Object's own storage. */
export function objectSql(storage: DurableObjectStorage): Sql {
  const { sql } = storage;
  return {
    all: <T extends object>(query: string, ...bindings: SqlValue[]) => sql.exec(query, ...bindings).toArray() as T[],
    first: <T extends object>(query: string, ...bindings: SqlValue[]) => {
      const next = sql.exec(query, ...bindings).next();
      return next.done === true ? undefined : (next.value as T);
    },
    run: (query, ...bindings) => {
      sql.exec(query, ...bindings);
    },
    transaction: (body) => storage.transactionSync(body),
  };
}

/** The asynchronous SQL port over D1. */
export function d1(database: D1Database): Db {
  return {
    batch: async (statements: Statement[]) => {
      if (statements.length === 0) return [];
      const prepared = statements.map(({ sql, bindings }) => database.prepare(sql).bind(...bindings));
      const results = await database.batch<Record<string, SqlValue>>(prepared);
      return results.map(({ results: rows }) => rows);
    },
  };
}
