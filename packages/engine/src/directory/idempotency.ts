import type { IdentityId } from '@pmail/core/ids.ts';
import { type Db, queryFirst, type Statement, statement } from '../sql.ts';

/**
 * Idempotency of the writes that are not sends: one record per API key and Idempotency-Key, made before the work begins
 * and completed with its answer.
 */

export interface RecordKey {
  /** The tenant of the API key, or `platform`. */
  scope: string;
  key_id: string;
  /** Hex SHA-256 of the Idempotency-Key. */
  idem_key: string;
}

export interface RequestMark {
  method: string;
  path: string;
  /** Hex MAC over method, path, query and body. */
  fingerprint: string;
}

export interface StoredAnswer {
  status: number;
  body: string;
}

export type Begin =
  /** The work is ours to do. `began` names our turn, `made` what an earlier one made and could not finish. */
  | { kind: 'begun'; began: number; made: IdentityId | null }
  | { kind: 'in_progress' }
  | { kind: 'conflict' }
  | { kind: 'completed'; answer: StoredAnswer };

/** After this a request that never finished is taken for dead, and its record is taken over. */
const TAKE_OVER_MS = 60_000;

interface Row {
  status: 'in_progress' | 'completed';
  identity_id: IdentityId | null;
  method: string;
  path: string;
  fingerprint: string;
  response_status: number | null;
  response_body: string | null;
  created_at: number;
  expires_at: number;
}

/**
 * Claims the record for a request, or says what stands there. Of two at once exactly one begins. Work that has made
 * something goes on only under the request that made it.
 */
export async function beginRequest(
  db: Db,
  key: RecordKey,
  request: RequestMark,
  now: number,
  retentionMs: number,
): Promise<Begin> {
  const { scope, key_id: keyId, idem_key: idemKey } = key;
  const [claimed = [], rows = []] = await db.batch([
    statement(
      `INSERT INTO idempotency_records
         (scope, key_id, idem_key, method, path, fingerprint, status, created_at, expires_at)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'in_progress', ?7, ?8)
       ON CONFLICT (scope, key_id, idem_key) DO UPDATE SET method = ?4, path = ?5, fingerprint = ?6,
         status = 'in_progress', response_status = NULL, response_body = NULL, created_at = ?7, expires_at = ?8,
         identity_id = CASE WHEN expires_at <= ?7 THEN NULL ELSE identity_id END
       WHERE expires_at <= ?7 OR (status = 'in_progress' AND created_at <= ?7 - ${TAKE_OVER_MS}
         AND (identity_id IS NULL OR (method = ?4 AND path = ?5 AND fingerprint = ?6)))
       RETURNING identity_id`,
      scope,
      keyId,
      idemKey,
      request.method,
      request.path,
      request.fingerprint,
      now,
      now + retentionMs,
    ),
    statement(
      'SELECT * FROM idempotency_records WHERE scope = ? AND key_id = ? AND idem_key = ?',
      scope,
      keyId,
      idemKey,
    ),
  ]);
  const [turn] = claimed as unknown as Pick<Row, 'identity_id'>[];
  if (turn !== undefined) return { kind: 'begun', began: now, made: turn.identity_id };
  const row = rows[0] as unknown as Row | undefined;
  if (row === undefined) throw new Error('idempotency record neither made nor there');
  const same = row.method === request.method && row.path === request.path && row.fingerprint === request.fingerprint;
  if (row.status === 'in_progress') return { kind: row.identity_id === null || same ? 'in_progress' : 'conflict' };
  if (!same) return { kind: 'conflict' };
  return { kind: 'completed', answer: { status: row.response_status ?? 200, body: row.response_body ?? 'null' } };
}

/** Keeps the answer for repeats; nothing when the record was taken over meanwhile. */
export async function completeRequest(db: Db, key: RecordKey, began: number, answer: StoredAnswer): Promise<void> {
  await db.batch([
    statement(
      `UPDATE idempotency_records SET status = 'completed', response_status = ?, response_body = ?
       WHERE scope = ? AND key_id = ? AND idem_key = ? AND status = 'in_progress' AND created_at = ?`,
      answer.status,
      answer.body,
      key.scope,
      key.key_id,
      key.idem_key,
      began,
    ),
  ]);
}

/** For the batch that makes an identity: a repeat of the request knows by it what it has to finish. */
export function madeStatement(key: RecordKey, began: number, identity: IdentityId): Statement {
  return statement(
    `UPDATE idempotency_records SET identity_id = ?
     WHERE scope = ? AND key_id = ? AND idem_key = ? AND status = 'in_progress' AND created_at = ?`,
    identity,
    key.scope,
    key.key_id,
    key.idem_key,
    began,
  );
}

/**
 * Gives the key back after a refusal. Where nothing was made, a corrected request may use it; where something was, only a
 * repeat, which can begin at once.
 */
export async function forgetRequest(db: Db, key: RecordKey, began: number): Promise<void> {
  const own = `scope = ? AND key_id = ? AND idem_key = ? AND status = 'in_progress' AND created_at = ?`;
  const turn = [key.scope, key.key_id, key.idem_key, began];
  await db.batch([
    statement(`DELETE FROM idempotency_records WHERE ${own} AND identity_id IS NULL`, ...turn),
    statement(`UPDATE idempotency_records SET created_at = 0 WHERE ${own}`, ...turn),
  ]);
}

/** Deletes records whose time is over, at most `limit`. Returns how many went. */
export async function deleteExpiredRequests(db: Db, now: number, limit: number): Promise<number> {
  const row = await queryFirst<{ n: number }>(
    db,
    `SELECT COUNT(*) AS n FROM (SELECT 1 FROM idempotency_records WHERE expires_at <= ? LIMIT ?)`,
    now,
    limit,
  );
  const count = row?.n ?? 0;
  if (count > 0) {
    await db.batch([
      statement(
        `DELETE FROM idempotency_records WHERE (scope, key_id, idem_key) IN (
           SELECT scope, key_id, idem_key FROM idempotency_records WHERE expires_at <= ? LIMIT ?)`,
        now,
        limit,
      ),
    ]);
  }
  return count;
}
