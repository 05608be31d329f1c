import type { SuppressionReason } from '@pmail/core/delivery/events.ts';
import type { MessageId, TenantId } from '@pmail/core/ids.ts';
import { type Db, statement } from '../sql.ts';

export interface SuppressionInsert {
  tenant_id: TenantId;
  address_hash: string;
  address_hint: string;
  reason: SuppressionReason;
  source_message_id: MessageId | null;
  note: string | null;
  created_at: number;
  /** Unix ms at which it ends by itself; for ever when missing. */
  expires_at?: number | null;
}

export interface SuppressionOwner {
  reason: SuppressionReason;
  source_message_id: string | null;
  created_at: number;
}

/**
 * Adds an address to a tenant's suppression list unless it stands there. An entry that has run out no longer counts, and
 * is written over.
 *
 * @returns the row that stands there now; the caller tells from its source whether this message put it there
 */
export async function suppress(db: Db, insert: SuppressionInsert): Promise<SuppressionOwner> {
  const [, rows = []] = await db.batch([
    statement(
      `INSERT INTO suppressions
         (tenant_id, address_hash, address_hint, reason, source_message_id, note, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (tenant_id, address_hash) DO UPDATE SET address_hint = excluded.address_hint,
         reason = excluded.reason, source_message_id = excluded.source_message_id, note = excluded.note,
         created_at = excluded.created_at, expires_at = excluded.expires_at
       WHERE suppressions.expires_at <= excluded.created_at`,
      insert.tenant_id,
      insert.address_hash,
      insert.address_hint,
      insert.reason,
      insert.source_message_id,
      insert.note,
      insert.created_at,
      insert.expires_at ?? null,
    ),
    statement(
      'SELECT reason, source_message_id, created_at FROM suppressions WHERE tenant_id = ? AND address_hash = ?',
      insert.tenant_id,
      insert.address_hash,
    ),
  ]);
  const [row] = rows as unknown as SuppressionOwner[];
  if (row === undefined) throw new Error('suppression neither inserted nor present');
  return row;
}
