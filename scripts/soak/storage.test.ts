import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { leftovers } from './storage.ts';

const STOPPED = 1_000_000_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pmail-soak-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, ...statements: string[]): void {
  mkdirSync(join(folder, 'do'), { recursive: true });
  const db = new DatabaseSync(join(folder, 'do', `${name}.sqlite`));
  for (const statement of statements) db.exec(statement);
  db.close();
}

/** What a load with one mailbox leaves, and then whatever else is done to each of its files. */
function state({ mailbox = [], quota = [], directory = [] }: Record<string, string[]> = {}): void {
  write(
    'mailbox',
    'CREATE TABLE meta (k TEXT, v)',
    'CREATE TABLE outbox (event_id TEXT, type TEXT, dispatched_at INTEGER)',
    'CREATE TABLE quota_tasks (n)',
    'CREATE TABLE followups (n)',
    "INSERT INTO outbox VALUES ('e1', 'message.sent', 1), ('e2', 'message.bounced', 2)",
    "INSERT INTO meta VALUES ('event_seq', 2), ('alarm:maintenance', 2000000000)",
    ...mailbox,
  );
  write('quota', 'CREATE TABLE meta (k TEXT, v)', 'CREATE TABLE holds (ref TEXT)', ...quota);
  write(
    'directory',
    'CREATE TABLE mailbox_work (poked_at INTEGER)',
    'CREATE TABLE event_index (id TEXT, fanned_out_at INTEGER)',
    'CREATE TABLE webhook_work (event_id TEXT)',
    'CREATE TABLE webhook_deliveries (status TEXT)',
    "INSERT INTO event_index VALUES ('e1', 1), ('e2', 1)",
    ...directory,
  );
}

const look = (used = 1, told = ['e2']) => leftovers(folder, STOPPED, { mailboxes: used, told: new Set(told) });

describe('what a load leaves behind', () => {
  it('is nothing when all have done their work', () => {
    state();
    expect(look()).toEqual({ mailboxes: 1, quotas: 1, directories: 1, events: 2, webhooks: 1, found: [] });
  });

  it.each([
    ['mailbox', "INSERT INTO meta VALUES ('dispatch:1', 1)", '1 messages wait for a transport'],
    ['mailbox', "INSERT INTO meta VALUES ('claim:1', 1)", '1 claims stand'],
    ['mailbox', 'UPDATE outbox SET dispatched_at = NULL', '2 events were not handed on'],
    ['mailbox', "INSERT INTO meta VALUES ('alarm:dispatch', 1)", 'alarm:dispatch stands 1000000 s in the past'],
    ['quota', "INSERT INTO holds VALUES ('m1')", '1 holds of sends'],
    ['directory', "DELETE FROM event_index WHERE id = 'e1'", '1 event of the mailboxes did not come to the directory'],
    ['directory', 'UPDATE event_index SET fanned_out_at = NULL', '2 events were not given to webhooks'],
    ['directory', "INSERT INTO webhook_work VALUES ('e2')", '1 webhooks are still to go'],
    ['directory', "INSERT INTO webhook_deliveries VALUES ('dead')", '1 webhooks were given up'],
  ])('is told of the %s: %s', (where, statement, text) => {
    state({ [where]: [statement] });
    expect(look().found).toEqual([expect.stringContaining(text)]);
  });

  it('is also a webhook that never came', () => {
    state();
    expect(look(1, []).found).toEqual(['1 event was never told to the webhook']);
  });

  it('says nothing when there is less to look at than the load used', () => {
    expect(look().found).toEqual([
      '0 mailboxes found, and 1 were used',
      'no quota was found, and one was used',
      '0 directories found, and there is 1',
      'no event was to be told to the webhook',
    ]);
    state();
    expect(look(2).found).toEqual(['1 mailboxes found, and 2 were used']);
  });
});
