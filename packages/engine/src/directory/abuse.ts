import type { IdentityId } from '@pmail/core/ids.ts';
import { type Db, statement } from '../sql.ts';
import { type AuditEntry, auditStatement } from './audit.ts';

/**
 * Pauses an identity for crossing an abuse threshold. The audit row, whose id follows from the event that tipped the
 * scale, is written in the same batch and only with the pause; once it stands, the same event pauses nothing any more,
 * so that a late repeat does not undo a resume. The system identity is never paused: one bounce must not stop everyone's
 * sign-in mail.
 *
 * @returns when this event paused the identity (now, or on an earlier run that died), or null when it did not
 */
export async function pauseForAbuse(db: Db, identity: IdentityId, audit: AuditEntry): Promise<number | null> {
  const condition = statement(
    `EXISTS (SELECT 1 FROM identities WHERE id = ? AND status = 'active' AND is_system = 0)`,
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
