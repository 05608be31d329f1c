import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAILBOX_MIGRATIONS } from '@pmail/engine/mailbox/schema.ts';
import { QUOTA_MIGRATIONS } from '@pmail/engine/quota/schema.ts';
import type { Migration } from '@pmail/engine/sql.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { expect, test } from 'vitest';

/**
 * Steps of a schema as they were handed out. Storage that has taken a step never takes it again, so one that is changed
 * afterwards is missing wherever it was taken before (P3). Whatever is new is a new step, with its line here.
 */
const HANDED_OUT = {
  mailbox: ['5d411962789d2d15', 'cdfbf48cfdc69742', '39994424aab45bf8', 'a595ee8628378ad5'],
  quota: ['fe39888008dd7e38', 'c901c59691e01452'],
  directory: {
    '0001_directory.sql': 'b6b90776e5a9d4f2',
    '0002_event_order.sql': '7cb1e8ea5e36546c',
    '0003_webhooks.sql': '82bc13cb5b7e9e24',
    '0004_list_order.sql': 'b0cc1ece7f3c2c9a',
  },
};

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

test.each([
  ['mailbox', MAILBOX_MIGRATIONS],
  ['quota', QUOTA_MIGRATIONS],
] as const)('no step of the schema of a %s has changed', (kind, migrations: readonly Migration[]) => {
  expect(migrations.map(({ statements }) => hash(statements.join(';\n')))).toEqual(HANDED_OUT[kind]);
});

test('no step of the directory has changed', () => {
  const folder = join(ROOT, 'migrations');
  const names = readdirSync(folder).sort();
  const hashes = names.map((name) => [name, hash(readFileSync(join(folder, name), 'utf8'))]);
  expect(Object.fromEntries(hashes)).toEqual(HANDED_OUT.directory);
});
