import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { SendOperation } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import type { Sql } from '../sql.ts';
import { findMessage } from './messages.ts';
import { parseJson } from './rows.ts';

/**
 * The idempotency ledger: for 30 days a key with the same request answers with the message it made, and with another
 * request it is refused. Only accepted sends stand in it, so a refused request may be repeated with its key.
 * Keys are stored as SHA-256 only.
 */

interface LedgerRow {
  fingerprint: string;
  message_id: MessageId;
  response_json: string;
}

export type LedgerHit = { ok: true; message: MessageResource } | Refusal;

/** What a key answers without any work, or undefined when it is new or its time has passed. */
export function lookUpKey(sql: Sql, keyHash: string, fingerprint: string, now: number): LedgerHit | undefined {
  const row = sql.first<LedgerRow>(
    'SELECT fingerprint, message_id, response_json FROM idempotency WHERE key_hash = ? AND expires_at > ?',
    keyHash,
    now,
  );
  if (row === undefined) return undefined;
  if (row.fingerprint !== fingerprint) {
    return refuse('idempotency_conflict', { original_message_id: row.message_id });
  }
  return { ok: true, message: restoreBodies(sql, row) };
}

/** The stored answer holds no bodies (a row has a size limit); they come from the message itself. */
function restoreBodies(sql: Sql, row: LedgerRow): MessageResource {
  const message = parseJson<MessageResource>(row.response_json);
  return { ...message, extracted_text: findMessage(sql, row.message_id)?.extracted_text ?? null };
}

/** Records an accepted send. The answer is stored without its bodies. */
export function recordKey(
  sql: Sql,
  entry: {
    key_hash: string;
    fingerprint: string;
    operation: SendOperation;
    message: MessageResource;
    now: number;
  },
): void {
  // An expired row may still stand there; the key counts as new.
  sql.run(
    `INSERT OR REPLACE INTO idempotency
       (key_hash, fingerprint, operation, message_id, response_json, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    entry.key_hash,
    entry.fingerprint,
    entry.operation,
    entry.message.id,
    JSON.stringify({ ...entry.message, extracted_text: null, text: null, html: null }),
    entry.now,
    entry.now + LIMITS.idempotency_retention_ms,
  );
}

export function deleteExpiredKeys(sql: Sql, now: number): void {
  sql.run('DELETE FROM idempotency WHERE expires_at <= ?', now);
}
