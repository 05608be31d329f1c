import { ObjectStorage } from '@pmail/testkit/doubles.ts';
import { describe, expect, test } from 'vitest';
import { MailboxRig } from './mailbox/mailbox.fixture.ts';
import { MAILBOX_MIGRATIONS } from './mailbox/schema.ts';
import { accepted, attempt } from './mailbox/transport.fixture.ts';
import { QUOTA_MIGRATIONS } from './quota/schema.ts';
import { type Migration, migrate, placeholders, type Sql } from './sql.ts';

/** Objects of any age come to the newest schema, whoever wakes them (P3). */

const KINDS = [
  ['mailbox', MAILBOX_MIGRATIONS],
  ['quota', QUOTA_MIGRATIONS],
] as const;

function newest(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}

/** Every table and index as it was declared. */
function schema(sql: Sql): unknown[] {
  return sql.all("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name");
}

function version(sql: Sql): string | undefined {
  return sql.first<{ v: string }>("SELECT v FROM meta WHERE k = 'schema_version'")?.v;
}

function next(migrations: readonly Migration[], ...statements: string[]): Migration[] {
  return [...migrations, { version: newest(migrations) + 1, statements }];
}

describe.each(KINDS)('the schema of a %s', (_kind, migrations) => {
  test('is numbered from one without gaps', () => {
    expect(migrations.map((step) => step.version)).toEqual(migrations.map((_, index) => index + 1));
  });

  test('is made in an empty object', () => {
    const { sql } = new ObjectStorage();
    expect(migrate(sql, migrations)).toBe(0);
    expect(version(sql)).toBe(String(newest(migrations)));
  });

  test('is the same when it is brought up step by step', () => {
    const [whole, stepwise] = [new ObjectStorage().sql, new ObjectStorage().sql];
    migrate(whole, migrations);
    for (let n = 1; n <= migrations.length; n++) migrate(stepwise, migrations.slice(0, n));
    expect(schema(stepwise)).toEqual(schema(whole));
  });

  test('is left alone when it is there already', () => {
    const storage = new ObjectStorage();
    migrate(storage.sql, migrations);
    const before = [schema(storage.sql), storage.dump()];
    expect(migrate(storage.sql, migrations)).toBe(newest(migrations));
    expect([schema(storage.sql), storage.dump()]).toEqual(before);
  });
});

describe('a step', () => {
  test('that comes with a later version keeps every row of an older object (P3)', async () => {
    const rig = new MailboxRig();
    const message = await rig.send({ body: { labels: ['kept'] } });
    const before = rig.message(message.id);
    const later = next(MAILBOX_MIGRATIONS, "ALTER TABLE messages ADD COLUMN tone TEXT NOT NULL DEFAULT 'plain'");
    expect(migrate(rig.sql, later)).toBe(newest(MAILBOX_MIGRATIONS));
    expect(version(rig.sql)).toBe(String(newest(later)));
    rig.restart();
    expect(rig.message(message.id)).toEqual(before);
    expect(rig.sql.all('SELECT tone FROM messages')).toEqual([{ tone: 'plain' }]);
    expect(migrate(rig.sql, later)).toBe(newest(later));
  });

  test('of a later version does not trouble the code of before it (P3)', async () => {
    const rig = new MailboxRig();
    const later = next(
      MAILBOX_MIGRATIONS,
      'ALTER TABLE messages ADD COLUMN tone TEXT',
      'ALTER TABLE deliveries ADD COLUMN hue TEXT',
      'CREATE TABLE moods (id TEXT PRIMARY KEY)',
    );
    migrate(rig.sql, later);
    const known = schema(rig.sql);
    rig.restart();
    const message = await rig.send();
    await attempt(rig, message.id, accepted());
    expect(rig.message(message.id).status).toBe('submitted');
    expect(version(rig.sql)).toBe(String(newest(later)));
    expect(schema(rig.sql)).toEqual(known);
  });

  test('that fails is undone as a whole, and made when it can be', () => {
    const { sql } = new ObjectStorage();
    const broken = next(QUOTA_MIGRATIONS, 'CREATE TABLE halfway (id TEXT)', 'INSERT INTO nowhere VALUES (1)');
    expect(() => migrate(sql, broken)).toThrow('nowhere');
    expect(version(sql)).toBe(String(newest(QUOTA_MIGRATIONS)));
    expect(schema(sql)).not.toContainEqual(expect.objectContaining({ name: 'halfway' }));
    expect(migrate(sql, next(QUOTA_MIGRATIONS, 'CREATE TABLE halfway (id TEXT)'))).toBe(newest(QUOTA_MIGRATIONS));
  });

  test('that fails does not undo the ones before it', () => {
    const { sql } = new ObjectStorage();
    const two = next(QUOTA_MIGRATIONS, 'CREATE TABLE second (id TEXT)');
    expect(() => migrate(sql, next(two, 'no statement'))).toThrow();
    expect(version(sql)).toBe(String(newest(two)));
  });
});

test('placeholders are as many as there are values', () => {
  expect([placeholders(1), placeholders(3)]).toEqual(['?', '?, ?, ?']);
});
