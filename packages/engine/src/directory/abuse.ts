import type { IdentityId } from '@pmail/core/ids.ts';
import { type Db, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';

/**
 * Pauses an identity for crossing an abuse threshold. The audit row, whose id follows from the event that tipped the
 * scale, is written in the same batch and only with the pause; once it stands, the same event pauses nothing any more. An
 * event that was counted before a person resumed the identity was known to them: a late repeat of it does not undo what
 * they did. The system identity is never paused: one bounce must not stop everyone's sign-in mail.
 *
 * @param countedAt Unix ms at which the event came into the window
 * @returns when this event paused the identity (now, or on an earlier run that died), or null when it did not
 */
export async function pauseForAbuse(
  db: Db,
  identity: IdentityId,
  countedAt: number,
  audit: AuditEntry,
): Promise<number | null> {
  const condition = statement(
    `EXISTS (SELECT 1 FROM identities WHERE id = ? AND status = 'active' AND is_system = 0)
     AND NOT EXISTS (SELECT 1 FROM audit_log
       WHERE tenant_id = ? AND created_at >= ? AND action = 'identity.resume' AND target_id = ?)`,
    identity,
    audit.tenant_id,
    countedAt,
    identity,
  );
  const [, , rows = []] = await db.batch([
    auditStatement(audit, condition),
    statement(
      `UPDATE identities SET status = 'paused', pause_reason = 'abuse_threshold', updated_at = ?
       WHERE id = ? AND status = 'active' AND is_system = 0
         AND EXISTS (SELECT 1 FROM audit_log WHERE id = ? AND created_at = ?)`,
      audit.at,
      identity,
      audit.id,
      audit.at,
    ),
    statement('SELECT created_at FROM audit_log WHERE id = ?', audit.id),
  ]);
  const [row] = rows;
  return row === undefined ? null : Number(row['created_at']);
}
