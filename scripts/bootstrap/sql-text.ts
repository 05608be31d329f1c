import type { SqlValue, Statement } from '@pmail/engine/sql.ts';

/**
 * A statement with its values written into the text, for a tool that takes SQL as a file. Values are quoted as SQLite
 * quotes them; a value with a NUL cannot be written this way and is refused.
 */
export function sqlText({ sql, bindings }: Statement): string {
  let next = 0;
  const text = sql.replace(/\?(\d+)?|'(?:[^']|'')*'/g, (token, number: string | undefined) => {
    if (token.startsWith("'")) return token;
    const index = number === undefined ? next++ : Number(number) - 1;
    if (index >= bindings.length) throw new Error('a placeholder without a value');
    return literal(bindings[index] ?? null);
  });
  return `${text.trim()};`;
}

function literal(value: SqlValue): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error('not a number that SQL can hold');
    return String(value);
  }
  if (value.includes('\0')) throw new Error('a value with a NUL');
  return `'${value.replaceAll("'", "''")}'`;
}
