import type { BlobStore } from '@pmail/engine/ports.ts';
import type { Sql, SqlValue } from '@pmail/engine/sql.ts';
import type { Wiring } from './wiring.ts';

/** Ways to break the storage of an object, statement by statement. */

export interface SqlChange {
  /** Reads whose answer is swallowed (true) or replaced by a row. */
  first?: (query: string, bindings: SqlValue[]) => boolean | object;
  /** Writes that are dropped. */
  run?: (query: string, bindings: SqlValue[]) => boolean;
  /** Statements that are given other values. */
  bind?: (query: string, bindings: SqlValue[]) => SqlValue[];
  /** Statements that are written in another way. */
  rewrite?: (query: string) => string;
}

export type MailboxChange = SqlChange;
export type QuotaChange = SqlChange;

function changedSql(sql: Sql, change: SqlChange): Sql {
  const query = (text: string): string => change.rewrite?.(text) ?? text;
  const bind = (text: string, bindings: SqlValue[]): SqlValue[] => change.bind?.(text, bindings) ?? bindings;
  return {
    all: (text, ...bindings) => sql.all(query(text), ...bind(text, bindings)),
    first: <T extends object>(text: string, ...bindings: SqlValue[]) => {
      const changed = change.first?.(text, bindings) ?? false;
      if (changed === true) return undefined;
      if (changed !== false) return changed as T;
      return sql.first<T>(query(text), ...bind(text, bindings));
    },
    run: (text, ...bindings) => {
      if (change.run?.(text, bindings) === true) return;
      sql.run(query(text), ...bind(text, bindings));
    },
    transaction: (body) => sql.transaction(body),
  };
}

function wiring(
  parts: Partial<Wiring> | undefined,
  mailbox: SqlChange | undefined,
  quota: SqlChange | undefined,
): Partial<Wiring> {
  return {
    ...parts,
    ...(mailbox === undefined ? {} : { mailbox: (ports) => ({ ...ports, sql: changedSql(ports.sql, mailbox) }) }),
    ...(quota === undefined ? {} : { quota: (world) => ({ ...world, sql: changedSql(world.sql, quota) }) }),
  };
}

/** The methods of a store as plain functions, to replace one of them. */
function blobs(store: BlobStore): BlobStore {
  return {
    put: (...args) => store.put(...args),
    get: (...args) => store.get(...args),
    delete: (...args) => store.delete(...args),
    list: (...args) => store.list(...args),
    inspect: (...args) => store.inspect(...args),
  };
}

export const broken = { wiring, blobs };
