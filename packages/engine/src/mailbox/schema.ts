import type { Migration } from '../sql.ts';

/**
 * The mailbox of one identity. `meta` holds the owner, the event sequence and one row per short-lived fact:
 * `claim:{msg}`, `backoff:{msg}`, `dispatch:{msg}`, `alarm:{purpose}`.
 */
export const MAILBOX_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    statements: [
      `CREATE TABLE threads (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, subject TEXT NOT NULL,
        first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, last_inbound_at INTEGER, last_outbound_at INTEGER,
        message_count INTEGER NOT NULL DEFAULT 0, unread_count INTEGER NOT NULL DEFAULT 0,
        participants_json TEXT NOT NULL DEFAULT '[]', reply_from_address TEXT,
        fallback_pinned INTEGER NOT NULL DEFAULT 0, lock_owner TEXT, lock_until INTEGER,
        archived INTEGER NOT NULL DEFAULT 0, last_direction TEXT NOT NULL DEFAULT 'outbound',
        snippet TEXT NOT NULL DEFAULT '')`,
      'CREATE INDEX threads_last ON threads (last_at DESC, id DESC)',
      `CREATE TABLE messages (
        rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, thread_seq INTEGER NOT NULL REFERENCES threads(seq),
        direction TEXT NOT NULL, status TEXT NOT NULL, status_reason TEXT, rfc_message_id TEXT,
        message_id_synthetic INTEGER NOT NULL DEFAULT 0, provider TEXT, provider_message_id TEXT, in_reply_to TEXT,
        references_json TEXT NOT NULL DEFAULT '[]', raw_sha256 TEXT, raw_r2_key TEXT, raw_size INTEGER,
        from_address TEXT, from_name TEXT, sender_domain TEXT, reply_to_json TEXT NOT NULL DEFAULT '[]',
        to_json TEXT NOT NULL DEFAULT '[]', cc_json TEXT NOT NULL DEFAULT '[]', bcc_json TEXT NOT NULL DEFAULT '[]',
        delivered_to TEXT, is_bcc INTEGER NOT NULL DEFAULT 0, is_primary_recipient INTEGER NOT NULL DEFAULT 1,
        subject TEXT, text TEXT, html_sanitized TEXT, extracted_text TEXT, snippet TEXT, sent_at INTEGER,
        received_at INTEGER NOT NULL, kind TEXT NOT NULL, automated_json TEXT, auth_json TEXT, verdict TEXT,
        spam_score REAL, known_sender INTEGER, quarantine_reason TEXT, flags_json TEXT NOT NULL DEFAULT '[]',
        read INTEGER NOT NULL DEFAULT 0, operation TEXT, parser_version INTEGER,
        metadata_json TEXT NOT NULL DEFAULT '{}', hop INTEGER NOT NULL DEFAULT 0,
        accepted INTEGER NOT NULL DEFAULT 0)`,
      'CREATE INDEX messages_thread ON messages (thread_seq, received_at)',
      'CREATE INDEX messages_rfc_id ON messages (rfc_message_id) WHERE rfc_message_id IS NOT NULL',
      'CREATE INDEX messages_provider_id ON messages (provider_message_id) WHERE provider_message_id IS NOT NULL',
      'CREATE INDEX messages_raw ON messages (raw_sha256) WHERE raw_sha256 IS NOT NULL',
      'CREATE INDEX messages_received ON messages (received_at DESC, id DESC)',
      'CREATE INDEX messages_from ON messages (from_address)',
      'CREATE INDEX messages_status ON messages (direction, status)',
      `CREATE TABLE deliveries (
        message_rowid INTEGER NOT NULL REFERENCES messages(rowid) ON DELETE CASCADE, address TEXT NOT NULL,
        field TEXT NOT NULL, status TEXT NOT NULL, smtp_code TEXT, enhanced_code TEXT, smtp_response TEXT,
        bounce_type TEXT, provider_event_ids_json TEXT NOT NULL DEFAULT '[]', updated_at INTEGER NOT NULL,
        position INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (message_rowid, address)) WITHOUT ROWID`,
      `CREATE TABLE attachments (
        id TEXT PRIMARY KEY, message_rowid INTEGER NOT NULL REFERENCES messages(rowid) ON DELETE CASCADE,
        filename TEXT, content_type TEXT NOT NULL, sniffed_type TEXT, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
        disposition TEXT, content_id TEXT, r2_key TEXT NOT NULL, text_status TEXT NOT NULL DEFAULT 'skipped',
        text_r2_key TEXT, text_pages INTEGER, risk TEXT, scan_status TEXT NOT NULL DEFAULT 'skipped',
        position INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
      'CREATE INDEX attachments_message ON attachments (message_rowid)',
      `CREATE TABLE labels (
        message_rowid INTEGER NOT NULL REFERENCES messages(rowid) ON DELETE CASCADE, label TEXT NOT NULL,
        PRIMARY KEY (message_rowid, label)) WITHOUT ROWID`,
      'CREATE INDEX labels_label ON labels (label)',
      `CREATE TABLE contacts (
        address TEXT PRIMARY KEY, name TEXT, domain TEXT NOT NULL, first_seen_at INTEGER NOT NULL,
        last_seen_at INTEGER NOT NULL, inbound_count INTEGER NOT NULL DEFAULT 0,
        outbound_count INTEGER NOT NULL DEFAULT 0, last_thread_seq INTEGER) WITHOUT ROWID`,
      `CREATE TABLE idempotency (
        key_hash TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, operation TEXT NOT NULL, message_id TEXT NOT NULL,
        response_json TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL)`,
      'CREATE INDEX idempotency_expiry ON idempotency (expires_at)',
      `CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, payload_json TEXT NOT NULL,
        occurred_at INTEGER NOT NULL, dispatched_at INTEGER)`,
      'CREATE INDEX outbox_waiting ON outbox (seq) WHERE dispatched_at IS NULL',
      'CREATE INDEX outbox_age ON outbox (occurred_at)',
      `CREATE TABLE rate_windows (
        sender TEXT NOT NULL, window_start INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (sender, window_start)) WITHOUT ROWID`,
      `CREATE VIRTUAL TABLE fts USING fts5(
        subject, participants, body_new, body_full, attachments, refs,
        content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2')`,
      // One row per transport call: what was claimed, and how it ended as far as anyone told us.
      `CREATE TABLE attempts (
        message_rowid INTEGER NOT NULL REFERENCES messages(rowid) ON DELETE CASCADE, n INTEGER NOT NULL,
        token TEXT NOT NULL, provider TEXT NOT NULL, claimed_at INTEGER NOT NULL, ended_at INTEGER,
        result TEXT, detail_json TEXT, late INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (message_rowid, n)) WITHOUT ROWID`,
      'CREATE UNIQUE INDEX attempts_token ON attempts (token)',
      // Other ids under which the world knows a message: of a later call of a partly accepted send, or learned.
      `CREATE TABLE message_aliases (
        alias TEXT PRIMARY KEY,
        message_rowid INTEGER NOT NULL REFERENCES messages(rowid) ON DELETE CASCADE) WITHOUT ROWID`,
      // What this mailbox still owes the tenant's quota, in order.
      `CREATE TABLE quota_tasks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, request_json TEXT NOT NULL, created_at INTEGER NOT NULL)`,
      // What the test providers have still to report about mail they took.
      `CREATE TABLE followups (
        message_rowid INTEGER NOT NULL REFERENCES messages(rowid) ON DELETE CASCADE, recipient TEXT NOT NULL,
        n INTEGER NOT NULL, kind TEXT NOT NULL, payload_json TEXT NOT NULL, due_at INTEGER NOT NULL,
        PRIMARY KEY (message_rowid, recipient, n)) WITHOUT ROWID`,
      'CREATE INDEX followups_due ON followups (due_at)',
    ],
  },
  {
    version: 2,
    statements: [
      // Accepted sends that a restore has taken away, found in the object store, until they are put back.
      `CREATE TABLE lost_sends (
        key_hash TEXT PRIMARY KEY, message_id TEXT NOT NULL, evidence_json TEXT NOT NULL) WITHOUT ROWID`,
    ],
  },
  {
    version: 3,
    statements: [
      // When, by its provider's clock, the report was made that the present details come from.
      'ALTER TABLE deliveries ADD COLUMN reported_at INTEGER',
    ],
  },
  {
    version: 4,
    statements: ['cleaned_before', 'cleaned_last'].map(
      // Mailboxes of before noted no clean-ups. What they last stored says how late it is at least, so that a clock which
      // has run away is not believed in the first moment.
      (note) => `INSERT OR IGNORE INTO meta (k, v)
        SELECT '${note}', COALESCE((SELECT received_at FROM messages ORDER BY rowid DESC LIMIT 1), v)
        FROM meta WHERE k = 'created_at'`,
    ),
  },
];
