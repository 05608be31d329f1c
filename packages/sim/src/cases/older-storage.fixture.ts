import { MAILBOX_MIGRATIONS } from '@pmail/engine/mailbox/schema.ts';
import { QUOTA_MIGRATIONS } from '@pmail/engine/quota/schema.ts';
import { type Migration, migrate, type Sql } from '@pmail/engine/sql.ts';
import { ObjectStorage } from '@pmail/testkit/doubles.ts';
import type { Scene } from './scenario.fixture.ts';

/**
 * Storage with a past life, as code of an earlier schema would have left it: rows that were really lived, from which what
 * the later steps have brought is taken away.
 */

/** What takes a step of a schema back, by its version. */
const MAILBOX_UNDO: Record<number, string> = {
  4: "DELETE FROM meta WHERE k IN ('cleaned_before', 'cleaned_last')",
  3: 'ALTER TABLE deliveries DROP COLUMN reported_at',
  2: 'DROP TABLE lost_sends',
};
const QUOTA_UNDO: Record<number, string> = { 2: 'ALTER TABLE applied DROP COLUMN accepted' };

/** The objects of an identity are moved, and the next instances find their storage at an earlier schema. */
export function ageStorage(own: Scene, missing: { mailbox: number; quota: number }): void {
  const { deployment } = own.stage;
  const { identity_id, tenant_id } = own.identity();
  const [mailbox, quota] = [deployment.mailbox(identity_id), deployment.quota(tenant_id)];
  mailbox.evict(false);
  quota.evict(false);
  takeBack(mailbox.sql, MAILBOX_MIGRATIONS, MAILBOX_UNDO, missing.mailbox);
  takeBack(quota.sql, QUOTA_MIGRATIONS, QUOTA_UNDO, missing.quota);
  if (missing.mailbox > 0) deployment.isOlder(mailbox);
  if (missing.quota > 0) deployment.isOlder(quota);
}

function takeBack(
  sql: Sql,
  migrations: readonly Migration[],
  undo: Readonly<Record<number, string>>,
  missing: number,
): void {
  const left = migrations.slice(0, migrations.length - missing);
  for (const { version } of migrations.slice(left.length).toReversed()) {
    const text = undo[version];
    if (text === undefined) throw new Error(`nobody has said how step ${version} is taken back`);
    sql.run(text);
  }
  sql.run("UPDATE meta SET v = ? WHERE k = 'schema_version'", String(left.at(-1)?.version ?? 0));
  // It has to be what the older code itself would have built, or this shows nothing.
  const built = new ObjectStorage().sql;
  migrate(built, left);
  if (schemaOf(sql) !== schemaOf(built)) throw new Error(`not the schema of before:\n${schemaOf(sql)}`);
}

function schemaOf(sql: Sql): string {
  return sql
    .all<{ sql: string }>(
      "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sim\\_%' ESCAPE '\\' AND sql IS NOT NULL ORDER BY name",
    )
    .map((row) => row.sql.replaceAll(/\s+/g, ' '))
    .join('\n');
}
