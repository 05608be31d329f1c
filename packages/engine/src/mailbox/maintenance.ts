import { idFloor, type MessageId, parseId } from '@pmail/core/ids.ts';
import { sentPrefix } from '@pmail/core/storage/keys.ts';
import { setDeadline } from '../alarms.ts';
import { readMeta, writeMeta } from '../meta.ts';
import { placeholders } from '../sql.ts';
import { deleteExpiredKeys } from './ledger.ts';
import { noticeRestore } from './restore.ts';
import { expiryTime, noteCleanUp } from './trusted-time.ts';
import { clearWhenIdle } from './work.ts';
import type { MailboxWorld } from './world.ts';

const RATE_WINDOW_RETENTION_MS = 48 * 3_600_000;
/** Outbox rows answer the events API; this is the longest retention a policy may set. */
const OUTBOX_RETENTION_MS = 365 * 86_400_000;
const LIST_PAGE = 1_000;
/** Longer ago than any pass that was made by a clock as it is now. */
const UNSWEPT_MS_MAX = 7 * 86_400_000;

/** The daily clean-up: expired keys, old windows and events, orphans in the object store, the work entry when idle. */
export async function maintain(world: MailboxWorld): Promise<void> {
  const { sql } = world;
  const now = world.now();
  sql.transaction(() => {
    const expired = expiryTime(sql, now);
    deleteExpiredKeys(sql, now);
    sql.run('DELETE FROM rate_windows WHERE window_start < ?', expired - RATE_WINDOW_RETENTION_MS);
    sql.run('DELETE FROM outbox WHERE dispatched_at IS NOT NULL AND occurred_at < ?', expired - OUTBOX_RETENTION_MS);
    noteCleanUp(sql, now);
    setDeadline(world, 'maintenance', now + world.waits.maintenance_every_ms);
  });
  await sweepOrphans(world);
  await clearWhenIdle(world);
}

/**
 * Deletes objects of sends that never committed. Keys hold ids, which rise with time, so each pass lists only what is
 * new since the last one and old enough that no request can still be about to commit it.
 */
export async function sweepOrphans(world: MailboxWorld): Promise<number> {
  const { sql } = world;
  const prefix = sentPrefix(world.owner);
  const until = `${prefix}${idFloor('msg', expiryTime(sql, world.now()) - world.waits.orphan_age_ms_min)}`;
  let position = readMeta(sql, 'orphans_swept_to') ?? prefix;
  // The clock was put back: what was made since lies before the place of the last pass.
  if (position > until) position = `${prefix}${idFloor('msg', world.now() - UNSWEPT_MS_MAX)}`;
  let deleted = 0;
  for (;;) {
    const { keys, more } = await world.blobs.list(prefix, position, LIST_PAGE);
    // By a clock that has jumped even a send of this moment is old; what it stores waits for the next pass.
    const first = keys.findIndex((key) => key >= until || world.storing.has(idIn(key, prefix)));
    const old = first < 0 ? keys : keys.slice(0, first);
    const orphans = orphansAmong(world, prefix, old);
    if (orphans.length > 0) {
      // To a mailbox that was put back every copy made since looks like one that never committed.
      if (noticeRestore(world, await world.events.lastSequence(world.owner.identity_id))) return deleted;
      // One of them may have been put back while the index was asked.
      const still = orphansAmong(world, prefix, orphans);
      await world.blobs.delete(still);
      deleted += still.length;
      world.log('info', 'orphans_deleted', { count: still.length });
    }
    const last = old.at(-1);
    if (last === undefined) return deleted;
    position = last;
    writeMeta(sql, 'orphans_swept_to', position);
    if (!more || old.length < keys.length) return deleted;
  }
}

function idIn(key: string, prefix: string): MessageId {
  return key.slice(prefix.length, prefix.length + 30) as MessageId;
}

function orphansAmong(world: MailboxWorld, prefix: string, keys: string[]): string[] {
  const owners = new Map<string, MessageId>();
  for (const key of keys) {
    const id = parseId('msg', idIn(key, prefix));
    if (id !== undefined) owners.set(key, id);
  }
  const ids = [...new Set(owners.values())];
  const known = new Set<string>();
  for (let i = 0; i < ids.length; i += 90) {
    const slice = ids.slice(i, i + 90);
    for (const { id } of world.sql.all<{ id: string }>(
      `SELECT id FROM messages WHERE id IN (${placeholders(slice.length)})`,
      ...slice,
    )) {
      known.add(id);
    }
  }
  return [...owners].filter(([, id]) => !known.has(id)).map(([key]) => key);
}
