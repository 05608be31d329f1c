import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { SendOperation } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { FILTER_TEXT_PREFIX } from '@pmail/core/policy/filters.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import type { Sql } from '../sql.ts';
import { findMessage } from './messages.ts';
import { type DeliveryRow, type MessageParts, type MessageRow, messageResource, parseJson } from './rows.ts';
import { expiryTime } from './trusted-time.ts';

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
    expiryTime(sql, now),
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
  // Answers that were stored before there was a fix had none.
  return { ...message, fix: null, extracted_text: findMessage(sql, row.message_id)?.extracted_text ?? null };
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

/** Whether a key's answer stands, whatever the request. */
export function knowsKey(sql: Sql, keyHash: string, now: number): boolean {
  return (
    sql.first('SELECT 1 FROM idempotency WHERE key_hash = ? AND expires_at > ?', keyHash, expiryTime(sql, now)) !==
    undefined
  );
}

/**
 * What the request that made a message was answered: the message as it was at acceptance, whatever has become of it.
 *
 * @param labels those it was sent with
 */
export function acceptedAnswer(owner: Owner, parts: MessageParts, labels: string[]): MessageResource {
  const { row } = parts;
  const kept = (delivery: DeliveryRow): boolean => delivery.smtp_response?.startsWith(FILTER_TEXT_PREFIX) ?? false;
  const deliveries = parts.deliveries.map((delivery): DeliveryRow => {
    const filtered = delivery.status === 'suppressed' && kept(delivery);
    return {
      ...delivery,
      status: filtered ? 'suppressed' : 'queued',
      smtp_code: null,
      enhanced_code: null,
      smtp_response: filtered ? delivery.smtp_response : null,
      bounce_type: null,
      updated_at: row.received_at,
    };
  });
  const accepted: MessageRow = {
    ...row,
    status: deliveries.every(({ status }) => status === 'suppressed') ? 'suppressed' : 'queued',
    status_reason: null,
    rfc_message_id: null,
    provider: null,
    provider_message_id: null,
    read: 1,
    flags_json: JSON.stringify(parseJson<string[]>(row.flags_json).filter((flag) => flag === 'body_truncated')),
  };
  return messageResource(owner, { ...parts, row: accepted, deliveries, labels }, { text: false, html: false });
}

export function deleteExpiredKeys(sql: Sql, now: number): void {
  sql.run('DELETE FROM idempotency WHERE expires_at <= ?', expiryTime(sql, now));
}
