import { beforeEach, describe, expect, test } from 'vitest';
import { ObjectStorage } from './doubles.ts';

/** The double of an object's storage: SQL with the platform's limits, transactions, and an alarm that goes with them. */

let storage: ObjectStorage;

beforeEach(() => {
  storage = new ObjectStorage();
  storage.sql.run('CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT)');
});

const rows = (): Record<string, string> =>
  Object.fromEntries(
    storage.sql.all<{ k: string; v: string }>('SELECT k, v FROM t ORDER BY k').map(({ k, v }) => [k, v]),
  );

const put = (k: string, v: string): void => storage.sql.run('INSERT OR REPLACE INTO t (k, v) VALUES (?, ?)', k, v);

describe('a transaction', () => {
  test('that ends keeps everything, and returns what its body returns', () => {
    const result = storage.sql.transaction(() => {
      put('a', '1');
      storage.alarm.set(1_000);
      return storage.sql.first<{ n: number }>('SELECT COUNT(*) AS n FROM t')?.n;
    });
    expect(result).toBe(1);
    expect(rows()).toEqual({ a: '1' });
    expect(storage.alarmAt).toBe(1_000);
  });

  test('that throws keeps nothing: rows, changed rows, deleted rows and the alarm are as before', () => {
    put('kept', '1');
    put('changed', '1');
    storage.alarm.set(500);
    expect(() =>
      storage.sql.transaction(() => {
        put('new', '1');
        put('changed', '2');
        storage.sql.run('DELETE FROM t WHERE k = ?', 'kept');
        storage.alarm.set(null);
        throw new Error('in the middle');
      }),
    ).toThrow('in the middle');
    expect(rows()).toEqual({ kept: '1', changed: '1' });
    expect(storage.alarmAt).toBe(500);
  });

  test('that fails in a statement keeps nothing, and the next one works', () => {
    put('a', '1');
    expect(() =>
      storage.sql.transaction(() => {
        put('b', '1');
        storage.sql.run("INSERT INTO t (k, v) VALUES ('a', 'again')");
      }),
    ).toThrow(/UNIQUE/);
    expect(rows()).toEqual({ a: '1' });
    storage.sql.transaction(() => put('c', '1'));
    expect(rows()).toEqual({ a: '1', c: '1' });
  });

  test('inside another is refused, and the outer one keeps nothing', () => {
    expect(() =>
      storage.sql.transaction(() => {
        put('outer', '1');
        storage.sql.transaction(() => put('inner', '1'));
      }),
    ).toThrow('transactions are not nested');
    expect(rows()).toEqual({});
  });
});

describe('the limits of the platform', () => {
  test('are a hundred values for one statement', () => {
    const list = (n: number): unknown =>
      storage.sql.first(
        `SELECT 1 AS one WHERE 'x' IN (${Array(n).fill('?').join(', ')})`,
        ...Array<string>(n).fill('x'),
      );
    expect(list(100)).toEqual({ one: 1 });
    expect(() => list(101)).toThrow('too many SQL variables');
  });

  test.each([
    ['of one byte', 'x', 2_000_000 - 1],
    ['of two', 'ä', 1_000_000 - 1],
    ['of three', '世', 666_666],
    ['of four', '😀', 499_999],
  ])('are two megabytes for one row, in characters %s', (_width, character, fits) => {
    put('k', character.repeat(fits));
    expect(rows()['k']).toHaveLength(fits * character.length);
    expect(() => put('k', character.repeat(fits + 1))).toThrow('string or blob too big');
  });

  test('hold inside a transaction too, which then keeps nothing', () => {
    expect(() =>
      storage.sql.transaction(() => {
        put('a', '1');
        put('b', 'x'.repeat(2_000_001));
      }),
    ).toThrow('string or blob too big');
    expect(rows()).toEqual({});
  });
});

describe('a hook before each statement', () => {
  test('sees it with its values, and fails it by throwing', () => {
    const seen: unknown[] = [];
    storage.beforeStatement = (query, bindings) => {
      seen.push([query, bindings]);
      if (bindings.includes('forbidden')) throw new Error('no');
    };
    storage.sql.first('SELECT v FROM t WHERE k = ?', 'a');
    expect(() => put('forbidden', '1')).toThrow('no');
    expect(seen).toEqual([
      ['SELECT v FROM t WHERE k = ?', ['a']],
      ['INSERT OR REPLACE INTO t (k, v) VALUES (?, ?)', ['forbidden', '1']],
    ]);
    storage.beforeStatement = () => {};
    expect(rows()).toEqual({});
  });
});

describe('a point in time', () => {
  test('comes back with rows and alarm, as often as it is asked for', () => {
    put('a', 'then');
    storage.alarm.set(7);
    const back = storage.pointInTime();
    for (const later of ['once', 'twice']) {
      put('a', later);
      put('b', later);
      storage.alarm.set(9);
      back();
      expect(rows()).toEqual({ a: 'then' });
      expect(storage.alarmAt).toBe(7);
    }
    // The port that an instance holds is the storage that was put back.
    storage.sql.transaction(() => put('c', 'after'));
    expect(rows()).toEqual({ a: 'then', c: 'after' });
  });
});

test('the dump has every value of every table, to search for what must not be there', () => {
  put('key', 'a secret');
  storage.sql.run('CREATE TABLE other (n INTEGER)');
  storage.sql.run('INSERT INTO other VALUES (4711)');
  expect(storage.dump()).toContain('a secret');
  expect(storage.dump()).toContain('4711');
});
