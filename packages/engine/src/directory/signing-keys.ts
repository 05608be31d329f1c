import type { SigningPurpose } from '@pmail/core/keys/signing.ts';
import { type Db, queryAll, type Statement, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';

export interface SigningKeyRow {
  purpose: SigningPurpose;
  /** One character, part of everything the key has signed. */
  kid: string;
  ciphertext: string;
  created_at: number;
  /** Null for the key in use; an older one verifies until then (Unix ms). */
  verify_until: number | null;
}

export function readSigningKeys(db: Db): Promise<SigningKeyRow[]> {
  return queryAll<SigningKeyRow>(db, 'SELECT * FROM signing_keys');
}

/** For a batch that must know whether a key still counts: its row, if it was not replaced by another of the same id. */
export function signingKeyStatement(
  purpose: SigningPurpose,
  { kid, created_at: createdAt }: Pick<SigningKeyRow, 'kid' | 'created_at'>,
): Statement {
  return statement(
    'SELECT verify_until FROM signing_keys WHERE purpose = ? AND kid = ? AND created_at = ?',
    purpose,
    kid,
    createdAt,
  );
}

/** Adds the first key of a purpose unless another isolate was faster; whoever comes second uses that one. */
export async function addFirstSigningKey(db: Db, row: SigningKeyRow): Promise<void> {
  await db.batch([
    statement(
      `INSERT OR IGNORE INTO signing_keys (purpose, kid, ciphertext, created_at, verify_until) VALUES (?, ?, ?, ?, NULL)`,
      row.purpose,
      row.kid,
      row.ciphertext,
      row.created_at,
    ),
  ]);
}

export interface SigningKeyChange {
  /** The key in use as the change was worked out on; when it is no longer so, nothing is written. */
  seen: SigningKeyRow | undefined;
  next: Omit<SigningKeyRow, 'verify_until'>;
  /** Until when the one seen verifies (Unix ms). */
  previous_until: number;
  /** Whether older keys of the purpose verify no longer than that either. */
  end_older: boolean;
  /** An older key with the id of the next one makes room for it when its time was over then (Unix ms). */
  reusable_before: number;
  audit: AuditEntry;
}

/**
 * Puts a new key in the place of the one in use, which then only verifies.
 *
 * @returns whether it was done, or somebody else was faster
 */
export async function replaceSigningKey(db: Db, change: SigningKeyChange): Promise<boolean> {
  const { seen, next, audit } = change;
  const { purpose, kid } = next;
  const noneInUse = statement(
    'NOT EXISTS (SELECT 1 FROM signing_keys WHERE purpose = ? AND verify_until IS NULL)',
    purpose,
  );
  const unchanged =
    seen === undefined
      ? noneInUse
      : statement(
          `EXISTS (SELECT 1 FROM signing_keys
                   WHERE purpose = ? AND kid = ? AND created_at = ? AND verify_until IS NULL)`,
          purpose,
          seen.kid,
          seen.created_at,
        );
  const results = await db.batch([
    auditStatement(audit, unchanged),
    statement(
      `DELETE FROM signing_keys WHERE purpose = ? AND kid = ? AND verify_until <= ? AND ${unchanged.sql}`,
      purpose,
      kid,
      change.reusable_before,
      ...unchanged.bindings,
    ),
    statement(
      'UPDATE signing_keys SET verify_until = ? WHERE purpose = ? AND kid = ? AND created_at = ? AND verify_until IS NULL',
      change.previous_until,
      purpose,
      seen?.kid ?? '',
      seen?.created_at ?? 0,
    ),
    statement(
      `UPDATE signing_keys SET verify_until = MIN(verify_until, ?) WHERE ? = 1 AND purpose = ? AND ${noneInUse.sql}`,
      change.previous_until,
      change.end_older ? 1 : 0,
      purpose,
      ...noneInUse.bindings,
    ),
    // Nobody is in use now exactly when the change may go on.
    statement(
      `INSERT INTO signing_keys (purpose, kid, ciphertext, created_at)
       SELECT ?, ?, ?, ? WHERE ${noneInUse.sql} RETURNING kid`,
      purpose,
      kid,
      next.ciphertext,
      next.created_at,
      ...noneInUse.bindings,
    ),
  ]);
  return results.at(-1)?.length === 1;
}

/** Forgets keys whose time was over before `before` (Unix ms); their ids can be used again. */
export async function deleteSpentSigningKeys(db: Db, before: number): Promise<void> {
  await db.batch([statement('DELETE FROM signing_keys WHERE verify_until <= ?', before)]);
}
