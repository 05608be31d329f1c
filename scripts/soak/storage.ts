import { globSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { counted } from '../load/words.ts';
import { TOLD } from './listener.ts';

/** What a stopped runtime has left on disk: whether any mailbox or quota still had something to do. */

/** An alarm may stand so long in the past before the platform counts as late. */
const LATE_MS = 60_000;

const UNPOKED_MS = 6 * 60_000;

const TYPES = TOLD.map((type) => `'${type}'`).join(', ');

export interface Leftovers {
  mailboxes: number;
  quotas: number;
  directories: number;
  /** Events that the mailboxes have handed on. */
  events: number;
  /** Those of them that the webhook had to be told of. */
  webhooks: number;
  /** What is left, in words, with the object's file. */
  found: string[];
}

/**
 * What the local queues hold is in the runtime's memory, where nobody can look. What went into one and what came out of
 * it are rows, though: a message that waits for its transport, an event that its mailbox has handed on and the directory
 * does not have, a report or a webhook that is still to go.
 *
 * @param state folder of the runtime's state
 * @param stopped Unix ms at which it was stopped
 * @param used how many mailboxes the load has used at least, since finding fewer means that this looked in the wrong
 *   place, and of which events its webhook was told
 */
export function leftovers(
  state: string,
  stopped: number,
  used: { mailboxes: number; told: ReadonlySet<string> },
): Leftovers {
  const left: Leftovers = { mailboxes: 0, quotas: 0, directories: 0, events: 0, webhooks: 0, found: [] };
  const toTell = new Set<string>();
  const handedOn = new Set<string>();
  const arrived = new Set<string>();
  for (const file of globSync('**/*.sqlite', { cwd: state })) {
    const db = new DatabaseSync(join(state, file), { readOnly: true });
    const ids = (query: string): string[] =>
      db
        .prepare(query)
        .all()
        .map(({ id }) => String(id));
    const find = (what: string[]): void => void left.found.push(...what.map((text) => `${file}: ${text}`));
    try {
      const tables = new Set(ids("SELECT name AS id FROM sqlite_schema WHERE type = 'table'"));
      if (tables.has('outbox')) {
        left.mailboxes++;
        find(inMailbox(db));
        for (const id of ids('SELECT event_id AS id FROM outbox')) handedOn.add(id);
        for (const id of ids(`SELECT event_id AS id FROM outbox WHERE type IN (${TYPES})`)) toTell.add(id);
      }
      if (tables.has('meta')) find(lateAlarms(db, stopped));
      if (tables.has('holds')) {
        left.quotas++;
        find(inQuota(db));
      }
      if (tables.has('webhook_work')) {
        left.directories++;
        find(inDirectory(db, stopped));
        for (const id of ids('SELECT id FROM event_index')) arrived.add(id);
      }
    } finally {
      db.close();
    }
  }
  left.events = handedOn.size;
  const lost = [...handedOn].filter((id) => !arrived.has(id)).length;
  if (lost > 0) left.found.push(`${counted(lost, 'event')} of the mailboxes did not come to the directory`);
  if (left.mailboxes < used.mailboxes) {
    left.found.push(`${left.mailboxes} mailboxes found, and ${used.mailboxes} were used`);
  }
  if (left.quotas === 0) left.found.push('no quota was found, and one was used');
  if (left.directories !== 1) left.found.push(`${left.directories} directories found, and there is 1`);
  left.webhooks = toTell.size;
  const untold = [...toTell].filter((id) => !used.told.has(id)).length;
  if (untold > 0)
    left.found.push(`${counted(untold, 'event')} ${untold === 1 ? 'was' : 'were'} never told to the webhook`);
  if (toTell.size === 0) left.found.push('no event was to be told to the webhook');
  return left;
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

function inQuota(db: DatabaseSync): string[] {
  return counts(db, { 'holds of sends that have ended': 'SELECT COUNT(*) AS n FROM holds' });
}

/** A mailbox forgets its entry when a poke of the cron finds it idle, and those come every five minutes. */
function inDirectory(db: DatabaseSync, stopped: number): string[] {
  return counts(db, {
    'mailboxes with an entry were not poked': `SELECT COUNT(*) AS n FROM mailbox_work WHERE poked_at < ${stopped - UNPOKED_MS}`,
    'events were not given to webhooks': 'SELECT COUNT(*) AS n FROM event_index WHERE fanned_out_at IS NULL',
    'webhooks are still to go': 'SELECT COUNT(*) AS n FROM webhook_work',
    'webhooks were given up': "SELECT COUNT(*) AS n FROM webhook_deliveries WHERE status = 'dead'",
  });
}

function lateAlarms(db: DatabaseSync, stopped: number): string[] {
  return db
    .prepare("SELECT k, v FROM meta WHERE k LIKE 'alarm:%'")
    .all()
    .filter(({ v }) => Number(v) < stopped - LATE_MS)
    .map(({ k, v }) => `${String(k)} stands ${Math.round((stopped - Number(v)) / 1_000)} s in the past`);
}
