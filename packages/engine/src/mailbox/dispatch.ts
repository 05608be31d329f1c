import type { MessageId } from '@pmail/core/ids.ts';
import { setDeadline } from '../alarms.ts';
import { metaWithPrefix, readMeta, writeMeta } from '../meta.ts';
import { isWaiting, readClaim } from './claims.ts';
import type { MailboxWorld } from './world.ts';

/**
 * The dispatch alarm: a message that is still queued long after its pointer was last sent gets a new one. This brings
 * back what a crash or a lost queue took; a pointer too many is harmless, because only one claim is ever given.
 */
export async function dispatchQueued(world: MailboxWorld): Promise<void> {
  const { sql } = world;
  const after = world.waits.dispatch_after_ms;
  for (const { k } of metaWithPrefix(sql, 'dispatch:')) {
    const message = k.slice('dispatch:'.length) as MessageId;
    // Looked at again at its turn: while the ones before were queued it may have been put off, or have left.
    const due = readMeta(sql, k);
    if (due === undefined || Number(due) + after > world.now() || readClaim(sql, message) !== undefined) continue;
    world.mark('dispatch.before_send');
    await world.outbound.send({
      v: 1,
      kind: 'send',
      ...world.owner,
      message_id: message,
      request_id: world.newId('req', world.now()),
    });
    world.mark('dispatch.after_send');
    // It may have left the queue meanwhile, and its row with it, or have been put off.
    sql.transaction(() => {
      if (isWaiting(sql, message) && readMeta(sql, k) === due) writeMeta(sql, k, String(world.now()));
    });
  }
  armDispatch(world);
}

/** Stands the alarm at the first message that will be due. A claimed one is the claim alarm's, and does not count. */
function armDispatch(world: MailboxWorld): void {
  const { sql } = world;
  sql.transaction(() => {
    const times = metaWithPrefix(sql, 'dispatch:')
      .filter(({ k }) => readClaim(sql, k.slice('dispatch:'.length) as MessageId) === undefined)
      .map(({ v }) => Number(v) + world.waits.dispatch_after_ms);
    setDeadline(world, 'dispatch', times.length === 0 ? null : Math.min(...times));
  });
}
