/**
 * The two SQL ports. Both speak SQLite: the synchronous one is the storage a Durable Object owns, the asynchronous
 * one is D1. Every value is bound, never written into the text.
 */

export type SqlValue = string | number | null;

/** Synchronous SQLite owned by one engine: `ctx.storage.sql` in workerd, `node:sqlite` in the simulator. */
export interface Sql {
  all<T extends object>(query: string, ...bindings: SqlValue[]): T[];
  first<T extends object>(query: string, ...bindings: SqlValue[]): T | undefined;
  run(query: string, ...bindings: SqlValue[]): void;
  /** Runs `body` as one transaction; a throw rolls everything back. Not to be nested. */
  transaction<T>(body: () => T): T;
}

export interface Statement {
  sql: string;
  bindings: SqlValue[];
}

/** Asynchronous SQLite shared by all: D1. A batch is one transaction; each statement answers its rows. */
export interface Db {
  batch(statements: Statement[]): Promise<Record<string, SqlValue>[][]>;
}

export function statement(sql: string, ...bindings: SqlValue[]): Statement {
  return { sql, bindings };
}

export async function queryAll<T extends object>(db: Db, sql: string, ...bindings: SqlValue[]): Promise<T[]> {
  const [rows = []] = await db.batch([{ sql, bindings }]);
  return rows as unknown as T[];
}

export async function queryFirst<T extends object>(
  db: Db,
  sql: string,
  ...bindings: SqlValue[]
): Promise<T | undefined> {
  const [row] = await queryAll<T>(db, sql, ...bindings);
  return row;
}

/** Placeholders for an IN list of `count` values. */
export function placeholders(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

/** A numbered schema change. Numbers rise by one and are never edited after they have shipped. */
export interface Migration {
  version: number;
  statements: readonly string[];
}

/**
 * Brings an object's schema to the newest version, each step in its own transaction. Safe to call on every start.
 *
 * @returns the version before
 */
export function migrate(sql: Sql, migrations: readonly Migration[]): number {
  sql.run('CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v TEXT NOT NULL) WITHOUT ROWID');
  const before = Number(sql.first<{ v: string }>("SELECT v FROM meta WHERE k = 'schema_version'")?.v ?? 0);
  for (const { version, statements } of migrations) {
    if (version <= before) continue;
    sql.transaction(() => {
      for (const text of statements) sql.run(text);
      sql.run("INSERT OR REPLACE INTO meta (k, v) VALUES ('schema_version', ?)", String(version));
    });
  }
  return before;
}
