import type { IdentityId, KeyId, TenantId } from '@pmail/core/ids.ts';
import { type Db, queryAll, queryFirst, type Statement, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';

/** A row of api_keys, and with `lookUpKey` the state of its tenant. */
export interface KeyRow {
  id: KeyId;
  lookup: string;
  hash: string;
  prev_hash: string | null;
  prev_expires_at: number | null;
  name: string;
  level: 'platform' | 'tenant' | 'identity';
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
  mode: 'live' | 'test';
  permissions_json: string;
  created_by_key_id: KeyId | null;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  created_at: number;
}

export type AuthRow = KeyRow & { tenant_status: 'active' | 'suspended' | 'erasing' | 'erased' | null };

/** For the batch that authenticates a request. */
export function keyStatement(lookup: string): Statement {
  return statement(
    `SELECT k.*, t.status AS tenant_status FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id WHERE k.lookup = ?`,
    lookup,
  );
}

/** @param onlyIf a condition (the text after WHERE) under which the key is added */
export function insertKeyStatement(row: KeyRow, onlyIf?: Statement): Statement {
  return statement(
    `INSERT INTO api_keys (id, lookup, hash, name, level, tenant_id, identity_id, mode, permissions_json,
       created_by_key_id, expires_at, created_at)
     SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${onlyIf?.sql ?? '1'}`,
    row.id,
    row.lookup,
    row.hash,
    row.name,
    row.level,
    row.tenant_id,
    row.identity_id,
    row.mode,
    row.permissions_json,
    row.created_by_key_id,
    row.expires_at,
    row.created_at,
    ...(onlyIf?.bindings ?? []),
  );
}

export async function touchKey(db: Db, id: KeyId, now: number): Promise<void> {
  await db.batch([
    statement(
      'UPDATE api_keys SET last_used_at = ?1 WHERE id = ?2 AND (last_used_at IS NULL OR last_used_at < ?1 - 60000)',
      now,
      id,
    ),
  ]);
}

export function findKey(db: Db, id: KeyId): Promise<KeyRow | undefined> {
  return queryFirst<KeyRow>(db, 'SELECT * FROM api_keys WHERE id = ?', id);
}

/** Keys within reach of a scope, newest first. Null stands for any; those of the system identity are in nobody's tenant. */
export function listKeys(
  db: Db,
  scope: { tenant_id: TenantId | null; identity_id: IdentityId | null },
  limit: number,
  after: { at: number; id: string } | null,
): Promise<KeyRow[]> {
  return queryAll<KeyRow>(
    db,
    `SELECT * FROM api_keys
     WHERE (?1 IS NULL OR (tenant_id = ?1
         AND (identity_id IS NULL OR identity_id NOT IN (SELECT id FROM identities WHERE is_system = 1))))
       AND (?2 IS NULL OR identity_id = ?2) AND (?3 IS NULL OR (created_at, id) < (?3, ?4))
     ORDER BY created_at DESC, id DESC LIMIT ?5`,
    scope.tenant_id,
    scope.identity_id,
    after?.at ?? null,
    after?.id ?? null,
    limit,
  );
}

/**
 * Adds a key unless its tenant has `max` keys that still work; the count is taken in the same transaction.
 *
 * @returns whether it was added
 */
export async function addKey(db: Db, row: KeyRow, max: number, audit: AuditEntry): Promise<boolean> {
  const room = statement(
    `(SELECT COUNT(*) FROM api_keys
      WHERE tenant_id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)) < ?`,
    row.tenant_id,
    row.created_at,
    max,
  );
  const added = statement('EXISTS (SELECT 1 FROM api_keys WHERE id = ?)', row.id);
  const results = await db.batch([
    insertKeyStatement(row, room),
    auditStatement(audit, added),
    statement('SELECT 1 FROM api_keys WHERE id = ?', row.id),
  ]);
  return results.at(-1)?.length === 1;
}

/** Ends every key that has not ended yet. */
export function revokeAllKeysStatement(now: number): Statement {
  return statement('UPDATE api_keys SET revoked_at = ? WHERE revoked_at IS NULL', now);
}

/** Ends a key at once. One that has ended stays as it is, and its end is recorded once. */
export async function revokeKey(db: Db, id: KeyId, now: number, audit: AuditEntry): Promise<void> {
  await db.batch([
    auditStatement(audit, statement('EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND revoked_at IS NULL)', id)),
    statement('UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?', now, id),
  ]);
}

/**
 * Replaces the secret; the one before keeps working until `overlapUntil` (Unix ms), or not at all with null.
 *
 * @returns whether it was replaced; a key that has been revoked, maybe a moment ago, gets no secret
 */
export async function rotateKey(
  db: Db,
  id: KeyId,
  hash: string,
  overlapUntil: number | null,
  audit: AuditEntry,
): Promise<boolean> {
  const results = await db.batch([
    auditStatement(audit, statement('EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND revoked_at IS NULL)', id)),
    statement(
      `UPDATE api_keys SET prev_hash = CASE WHEN ?1 IS NULL THEN NULL ELSE hash END, prev_expires_at = ?1, hash = ?2
       WHERE id = ?3 AND revoked_at IS NULL RETURNING id`,
      overlapUntil,
      hash,
      id,
    ),
  ]);
  return results[1]?.length === 1;
}
