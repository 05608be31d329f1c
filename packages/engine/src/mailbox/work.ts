import { deleteMeta, metaWithPrefix, readMeta, writeMeta } from '../meta.ts';
import type { MailboxWorld } from './world.ts';

/**
 * The mailbox's entry in the registry of mailboxes with work. A cron pokes the entries, so work is found even when the
 * platform has lost the object's alarm. The entry is made before the first send commits and stays until a day passes
 * with nothing to do, so a busy mailbox does not write it for every send.
 */

export function needsMark(world: MailboxWorld): boolean {
  return readMeta(world.sql, 'work_since') === undefined;
}

/** Makes the entry; remembered here only once it stands there. */
export async function markWorking(world: MailboxWorld): Promise<void> {
  const since = world.now();
  await world.registry.mark(world.owner.identity_id, since);
  writeMeta(world.sql, 'work_since', String(since));
}

export function hasWork(world: MailboxWorld): boolean {
  const { sql } = world;
  return (
    metaWithPrefix(sql, 'dispatch:').length > 0 ||
    metaWithPrefix(sql, 'claim:').length > 0 ||
    sql.first('SELECT 1 FROM outbox WHERE dispatched_at IS NULL LIMIT 1') !== undefined ||
    sql.first('SELECT 1 FROM quota_tasks LIMIT 1') !== undefined ||
    sql.first('SELECT 1 FROM followups LIMIT 1') !== undefined
  );
}

/**
 * Takes the entry back when there is nothing to do. It is forgotten here first: should the call fail, an entry too
 * many stays, which a poke finds and clears; a send in between makes a newer entry, which the call leaves alone.
 */
export async function clearWhenIdle(world: MailboxWorld): Promise<void> {
  const since = readMeta(world.sql, 'work_since');
  if (since === undefined || hasWork(world)) return;
  deleteMeta(world.sql, 'work_since');
  await world.registry.clear(world.owner.identity_id, Number(since));
}
