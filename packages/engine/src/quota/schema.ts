import type { Migration } from '../sql.ts';

export const QUOTA_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    statements: [
      `CREATE TABLE counters (
        metric TEXT NOT NULL, window TEXT NOT NULL, value INTEGER NOT NULL,
        PRIMARY KEY (metric, window)) WITHOUT ROWID`,
      `CREATE TABLE allowances (
        feature TEXT PRIMARY KEY, granted INTEGER, used INTEGER NOT NULL DEFAULT 0,
        held INTEGER NOT NULL DEFAULT 0, resets_at INTEGER) WITHOUT ROWID`,
      // A hold also remembers what was counted for its send, so that giving it back is exact and happens once.
      `CREATE TABLE holds (
        id INTEGER PRIMARY KEY AUTOINCREMENT, feature TEXT NOT NULL, units INTEGER NOT NULL, ref TEXT NOT NULL,
        expires_at INTEGER NOT NULL, identity_id TEXT NOT NULL, window TEXT NOT NULL,
        tenant_counted INTEGER NOT NULL, UNIQUE (feature, ref))`,
      'CREATE INDEX holds_expiry ON holds (expires_at)',
      // Which bookkeeping of a send was applied: n from 1 for settlements, 0 for its release, negative for usage.
      `CREATE TABLE applied (
        ref TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (ref, n)) WITHOUT ROWID`,
      'CREATE INDEX applied_age ON applied (at)',
      `CREATE TABLE outcomes (
        identity_id TEXT NOT NULL, seq INTEGER NOT NULL, outcome TEXT NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (identity_id, seq)) WITHOUT ROWID`,
      'CREATE TABLE outcome_events (event_id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID',
      'CREATE INDEX outcome_events_age ON outcome_events (at)',
    ],
  },
  {
    version: 2,
    statements: [
      // Recipients that a settlement counted, a bit for each position in the message.
      'ALTER TABLE applied ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0',
    ],
  },
];
