import { globSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** What a stopped runtime has left on disk: whether any mailbox or quota still had something to do. */

/** An alarm may stand so long in the past before the platform counts as late. */
const LATE_MS = 60_000;

const UNPOKED_MS = 6 * 60_000;

export interface Leftovers {
  mailboxes: number;
  /** What is left, in words, with the object's file. */
  found: string[];
}

/** @param state folder of the runtime's state; @param stopped Unix ms at which it was stopped */
export function leftovers(state: string, stopped: number): Leftovers {
  const found: string[] = [];
  let mailboxes = 0;
  for (const file of globSync('**/*.sqlite', { cwd: state })) {
    const db = new DatabaseSync(join(state, file), { readOnly: true });
    try {
      const tables = new Set(
        db
          .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
          .all()
          .map(({ name }) => String(name)),
      );
      if (tables.has('outbox')) {
        mailboxes++;
        found.push(...inMailbox(db).map((what) => `${file}: ${what}`));
      }
      if (tables.has('meta')) found.push(...lateAlarms(db, stopped).map((what) => `${file}: ${what}`));
      if (tables.has('webhook_deliveries')) found.push(...inDirectory(db, stopped));
    } finally {
      db.close();
    }
  }
  return { mailboxes, found };
}

function counts(db: DatabaseSync, queries: Record<string, string>): string[] {
  return Object.entries(queries).flatMap(([what, query]) => {
    const n = Number(db.prepare(query).get()?.['n'] ?? 0);
    return n === 0 ? [] : [`${n} ${what}`];
  });
}

function inMailbox(db: DatabaseSync): string[] {
  return counts(db, {
    'messages wait for a transport': "SELECT COUNT(*) AS n FROM meta WHERE k LIKE 'dispatch:%'",
    'claims stand': "SELECT COUNT(*) AS n FROM meta WHERE k LIKE 'claim:%'",
    'events were not handed on': 'SELECT COUNT(*) AS n FROM outbox WHERE dispatched_at IS NULL',
    'quota tasks are owed': 'SELECT COUNT(*) AS n FROM quota_tasks',
    'reports of the test provider are to come': 'SELECT COUNT(*) AS n FROM followups',
    'numbers of events are missing':
      "SELECT (SELECT v FROM meta WHERE k = 'event_seq') - (SELECT COUNT(*) FROM outbox) AS n",
  });
}

/** A mailbox forgets its entry when a poke of the cron finds it idle, and those come every five minutes. */
function inDirectory(db: DatabaseSync, stopped: number): string[] {
  return counts(db, {
    'mailboxes with an entry were not poked': `SELECT COUNT(*) AS n FROM mailbox_work WHERE poked_at < ${stopped - UNPOKED_MS}`,
  });
}

function lateAlarms(db: DatabaseSync, stopped: number): string[] {
  return db
    .prepare("SELECT k, v FROM meta WHERE k LIKE 'alarm:%'")
    .all()
    .filter(({ v }) => Number(v) < stopped - LATE_MS)
    .map(({ k, v }) => `${String(k)} stands ${Math.round((stopped - Number(v)) / 1_000)} s in the past`);
}
