import type { IdentityId } from '@pmail/core/ids.ts';
import type { WorkRegistry } from '../ports.ts';
import { type Db, queryAll, statement } from '../sql.ts';

/** No two clocks of a healthy platform are so far apart. */
const AHEAD_MS = 10 * 60_000;

/** The registry of mailboxes with work, over the directory. */
export function workRegistry(db: Db): WorkRegistry {
  return {
    mark: async (identity, since) => {
      await db.batch([
        statement(
          `INSERT INTO mailbox_work (identity_id, since, poked_at) VALUES (?1, ?2, ?2)
           ON CONFLICT (identity_id) DO UPDATE SET since = ?2`,
          identity,
          since,
        ),
      ]);
    },
    clear: async (identity, since) => {
      await db.batch([statement('DELETE FROM mailbox_work WHERE identity_id = ? AND since = ?', identity, since)]);
    },
  };
}

/**
 * Mailboxes that were not poked since `before`, the longest forgotten first; marks them as poked now. One that was poked
 * by a clock which ran ahead would not come up until that time has really come, and counts as forgotten.
 */
export async function takeForPoke(db: Db, before: number, now: number, limit: number): Promise<IdentityId[]> {
  const rows = await queryAll<{ identity_id: IdentityId }>(
    db,
    `UPDATE mailbox_work SET poked_at = ? WHERE identity_id IN (
       SELECT identity_id FROM mailbox_work WHERE poked_at <= ? OR poked_at > ? ORDER BY poked_at LIMIT ?
     ) RETURNING identity_id`,
    now,
    before,
    now + AHEAD_MS,
    limit,
  );
  return rows.map(({ identity_id }) => identity_id);
}
