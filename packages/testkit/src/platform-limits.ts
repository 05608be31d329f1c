import { utf8Length } from '@pmail/core/hash.ts';
import type { SqlValue } from '@pmail/engine/sql.ts';

/** Limits of the platform's SQLite that node's does not have: values bound to one statement, and bytes in one row. */
const BINDINGS_MAX = 100;
const ROW_BYTES_MAX = 2_000_000;

/** UTF-8 takes at most three bytes for each unit of a string. */
const BYTES_PER_UNIT_MAX = 3;

/** Throws as the platform does for a statement that is too large for it. */
export function checkPlatformLimits(bindings: readonly SqlValue[]): void {
  if (bindings.length > BINDINGS_MAX) throw new Error('too many SQL variables');
  let units = 0;
  for (const value of bindings) if (typeof value === 'string') units += value.length;
  if (units * BYTES_PER_UNIT_MAX <= ROW_BYTES_MAX) return;
  const bytes = bindings.reduce<number>((sum, value) => sum + utf8Length(String(value ?? '')), 0);
  if (bytes > ROW_BYTES_MAX) throw new Error('string or blob too big');
}
