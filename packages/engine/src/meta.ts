import type { Sql } from './sql.ts';

/** The `meta` table that every object has: text by key. */

export function readMeta(sql: Sql, key: string): string | undefined {
  return sql.first<{ v: string }>('SELECT v FROM meta WHERE k = ?', key)?.v;
}

export function writeMeta(sql: Sql, key: string, value: string): void {
  sql.run('INSERT OR REPLACE INTO meta (k, v) VALUES (?, ?)', key, value);
}

export function deleteMeta(sql: Sql, ...keys: string[]): void {
  for (const key of keys) sql.run('DELETE FROM meta WHERE k = ?', key);
}

/** Rows whose key starts with `prefix`, which ends in a colon; the semicolon is the next character after it. */
export function metaWithPrefix(sql: Sql, prefix: `${string}:`): { k: string; v: string }[] {
  return sql.all('SELECT k, v FROM meta WHERE k >= ? AND k < ? ORDER BY k', prefix, `${prefix.slice(0, -1)};`);
}
