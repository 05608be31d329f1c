import { type Db, queryAll, statement } from '../sql.ts';

export type SigningPurpose = 'thread' | 'link' | 'cursor';

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
