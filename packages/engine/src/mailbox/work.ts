import { deleteMeta, metaWithPrefix, readMeta, writeMeta } from '../meta.ts';
import type { MailboxWorld } from './world.ts';

/**
 * The mailbox's entry in the registry of mailboxes with work. A cron pokes the entries, so work is found even when the
 * platform has lost the object's alarm. The entry stands before anything commits that an alarm has to finish, and goes
 * when a poke finds nothing to do, so a busy mailbox does not write it for every send.
 */

/** Makes the entry unless it stands; throws when it cannot, and then nothing that needs it may be committed. */
export async function ensureEntry(world: MailboxWorld): Promise<void> {
  if (readMeta(world.sql, 'work_since') !== undefined) return;
  // Those who need it at once share one: of two, the registry keeps one, and it might not be the one known here.
  world.entry.making ??= makeEntry(world).finally(() => {
    world.entry.making = null;
  });
  await world.entry.making;
}

async function makeEntry(world: MailboxWorld): Promise<void> {
  const since = world.now();
  await world.registry.mark(world.owner.identity_id, since);
  writeMeta(world.sql, 'work_since', String(since));
}

/** Runs something that may leave work behind; while it runs the entry is not taken back. */
export async function withEntry<T>(world: MailboxWorld, run: () => Promise<T> | T): Promise<T> {
  return guardEntry(world, async () => {
    await ensureEntry(world);
    return run();
  });
}

/** Keeps the entry while `run` is under way, for a caller that makes it beside other things. */
export async function guardEntry<T>(world: MailboxWorld, run: () => Promise<T>): Promise<T> {
  world.running.count++;
  try {
    return await run();
  } finally {
    world.running.count--;
  }
}

export function hasWork(world: MailboxWorld): boolean {
  const { sql } = world;
  return (
    metaWithPrefix(sql, 'dispatch:').length > 0 ||
    metaWithPrefix(sql, 'claim:').length > 0 ||
    sql.first('SELECT 1 FROM outbox WHERE dispatched_at IS NULL LIMIT 1') !== undefined ||
    sql.first('SELECT 1 FROM quota_tasks LIMIT 1') !== undefined ||
    readMeta(sql, 'alarm:rebuild') !== undefined ||
    sql.first('SELECT 1 FROM followups LIMIT 1') !== undefined
  );
}

/**
 * Takes the entry back when there is nothing to do. It counts as gone here first, and is only remembered as one to take
 * back: should the call fail, an entry too many stays until the next poke; a send in between makes a newer entry, which
 * the call leaves alone.
 */
export async function clearWhenIdle(world: MailboxWorld): Promise<void> {
  const { sql } = world;
  const since = readMeta(sql, 'work_since') ?? readMeta(sql, 'work_left');
  if (since === undefined || world.running.count > 0 || hasWork(world)) return;
  sql.transaction(() => {
    deleteMeta(sql, 'work_since');
    writeMeta(sql, 'work_left', since);
  });
  await world.registry.clear(world.owner.identity_id, Number(since));
  if (readMeta(sql, 'work_left') === since) deleteMeta(sql, 'work_left');
}
