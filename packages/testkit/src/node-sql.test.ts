import { DatabaseSync } from 'node:sqlite';
import { statement } from '@pmail/engine/sql.ts';
import { describe, expect, test } from 'vitest';
import { DatabasePool } from './database-pool.ts';
import { databaseTemplate } from './database-template.ts';
import { memoryDirectory, memorySql, nodeDb, nodeSql } from './node-sql.ts';

const TABLE = 'CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT UNIQUE)';

describe('the storage of one object', () => {
  test('answers all rows, the first, or none', () => {
    const sql = memorySql();
    sql.run(TABLE);
    expect(sql.all('SELECT * FROM t')).toEqual([]);
    expect(sql.first('SELECT * FROM t')).toBeUndefined();
    sql.run("INSERT INTO t (v) VALUES ('a'), ('b')");
    expect(sql.all('SELECT v FROM t ORDER BY v')).toEqual([{ v: 'a' }, { v: 'b' }]);
    expect(sql.first('SELECT v FROM t ORDER BY v')).toEqual({ v: 'a' });
  });

  test('has the whole effect of a statement that returns rows, also when only the first is asked for', () => {
    const sql = memorySql();
    sql.run(TABLE);
    expect(sql.first("INSERT INTO t (v) VALUES ('a'), ('b'), ('c') RETURNING v")).toEqual({ v: 'a' });
    expect(sql.all('SELECT v FROM t')).toHaveLength(3);
    sql.first("UPDATE t SET v = v || '!' RETURNING v");
    expect(sql.all('SELECT v FROM t ORDER BY id')).toEqual([{ v: 'a!' }, { v: 'b!' }, { v: 'c!' }]);
  });

  test('binds numbered and repeated values, null, and large numbers', () => {
    const sql = memorySql();
    expect(sql.first('SELECT ?1 AS a, ?2 AS b, ?1 AS c', 'x', null)).toEqual({ a: 'x', b: null, c: 'x' });
    const at = Date.UTC(2026, 9, 24);
    expect(sql.first('SELECT ? AS at', at)).toEqual({ at });
  });

  test('rolls a transaction back as a whole, and works on', () => {
    const sql = memorySql();
    sql.run(TABLE);
    expect(() =>
      sql.transaction(() => {
        sql.run("INSERT INTO t (v) VALUES ('a')");
        throw new Error('no');
      }),
    ).toThrow('no');
    expect(sql.transaction(() => sql.all('SELECT * FROM t'))).toEqual([]);
  });
});

describe('the shared database', () => {
  const make = () => {
    const database = new DatabaseSync(':memory:');
    database.exec(TABLE);
    return nodeDb(database);
  };

  test('answers each statement of a batch, which sees the ones before it', async () => {
    const results = await make().batch([
      statement('INSERT INTO t (v) VALUES (?) RETURNING id', 'a'),
      statement('INSERT INTO t (v) VALUES (?)', 'b'),
      statement('SELECT v FROM t ORDER BY v'),
    ]);
    expect(results).toEqual([[{ id: 1 }], [], [{ v: 'a' }, { v: 'b' }]]);
  });

  test('keeps nothing of a batch in which one statement fails, and works on', async () => {
    const db = make();
    await expect(
      db.batch([statement("INSERT INTO t (v) VALUES ('a')"), statement("INSERT INTO t (v) VALUES ('a')")]),
    ).rejects.toThrow(/UNIQUE/);
    await expect(db.batch([statement("INSERT INTO t (v) VALUES ('b')"), statement('nonsense')])).rejects.toThrow();
    expect(await db.batch([statement('SELECT * FROM t')])).toEqual([[]]);
    expect(await db.batch([])).toEqual([]);
  });

  test('has every migration applied when it is a directory, and each is its own', async () => {
    const [one, other] = [nodeDb(memoryDirectory()), nodeDb(memoryDirectory())];
    await one.batch([statement("INSERT INTO mailbox_work (identity_id, since, poked_at) VALUES ('idn_1', 1, 1)")]);
    expect(await other.batch([statement('SELECT * FROM mailbox_work')])).toEqual([[]]);
    const [tables] = await other.batch([statement("SELECT name FROM sqlite_schema WHERE type = 'table'")]);
    expect(tables?.map(({ name }) => name)).toEqual(expect.arrayContaining(['tenants', 'identities', 'event_index']));
  });
});

describe('a template', () => {
  test('is built once, and each copy is its own and whole', () => {
    let built = 0;
    const make = databaseTemplate((database) => {
      built++;
      database.exec(`${TABLE}; INSERT INTO t (v) VALUES ('first'); CREATE VIRTUAL TABLE f USING fts5(x, content = '')`);
    });
    const [one, two, three] = [make(), make(), make()];
    expect(built).toBe(1);
    one.exec("INSERT INTO t (v) VALUES ('one'); INSERT INTO f (rowid, x) VALUES (1, 'hello world')");
    two.exec("INSERT INTO t (v) VALUES ('two')");
    const values = (database: DatabaseSync): unknown[] =>
      database
        .prepare('SELECT id, v FROM t ORDER BY id')
        .all()
        .map((row) => Object.values(row));
    expect(values(one)).toEqual([
      [1, 'first'],
      [2, 'one'],
    ]);
    expect(values(two)).toEqual([
      [1, 'first'],
      [2, 'two'],
    ]);
    expect(values(three)).toEqual([[1, 'first']]);
    expect(one.prepare("SELECT rowid FROM f WHERE f MATCH 'world'").all()).toHaveLength(1);
    expect(two.prepare("SELECT rowid FROM f WHERE f MATCH 'world'").all()).toEqual([]);
  });
});

describe('a pool', () => {
  const pool = (): DatabasePool =>
    new DatabasePool((database) => {
      database.exec(`${TABLE}; INSERT INTO t (v) VALUES ('first'); CREATE VIRTUAL TABLE f USING fts5(x, content = '')`);
    });

  test('gives a database out again as it was built: rows, numbers and indexes', () => {
    const own = pool();
    const ids: unknown[] = [];
    for (let round = 0; round < 3; round++) {
      const taken = own.take();
      taken.sql.transaction(() => taken.sql.run("INSERT INTO t (v) VALUES ('more')"));
      taken.sql.run("INSERT INTO f (rowid, x) VALUES (1, 'hello')");
      taken.sql.run("DELETE FROM t WHERE v = 'first'");
      ids.push(taken.sql.first("SELECT id FROM t WHERE v = 'more'"));
      expect(taken.sql.all("SELECT rowid FROM f WHERE f MATCH 'hello'")).toHaveLength(1);
      own.giveBack(taken);
    }
    expect(ids).toEqual([{ id: 2 }, { id: 2 }, { id: 2 }]);
  });

  test('gives every taker another one', () => {
    const own = pool();
    const [one, two] = [own.take(), own.take()];
    one.sql.run("INSERT INTO t (v) VALUES ('one')");
    expect(two.sql.all('SELECT v FROM t')).toEqual([{ v: 'first' }]);
  });

  test('has transactions that roll back by themselves, in both ports', async () => {
    const { sql, db } = pool().take();
    sql.run("INSERT INTO t (v) VALUES ('before')");
    expect(() =>
      sql.transaction(() => {
        sql.run("INSERT INTO t (v) VALUES ('inside')");
        throw new Error('no');
      }),
    ).toThrow('no');
    await expect(
      db.batch([statement("INSERT INTO t (v) VALUES ('batch')"), statement("INSERT INTO t (v) VALUES ('first')")]),
    ).rejects.toThrow(/UNIQUE/);
    expect(sql.all('SELECT v FROM t ORDER BY id')).toEqual([{ v: 'first' }, { v: 'before' }]);
    expect(() => sql.transaction(() => sql.transaction(() => undefined))).toThrow('transactions are not nested');
  });

  test('does with a database what one does that stands alone', () => {
    const alone = nodeSql(databaseTemplate((database) => database.exec(TABLE))());
    const own = new DatabasePool((database) => {
      database.exec(TABLE);
    }).take().sql;
    for (const sql of [alone, own]) {
      sql.transaction(() => {
        sql.run("INSERT INTO t (v) VALUES ('a')");
        sql.run("INSERT INTO t (v) VALUES ('b')");
      });
      expect(() => sql.run("INSERT INTO t (v) VALUES ('a')")).toThrow(/UNIQUE/);
      expect(sql.all('SELECT * FROM t')).toEqual([
        { id: 1, v: 'a' },
        { id: 2, v: 'b' },
      ]);
    }
  });
});
