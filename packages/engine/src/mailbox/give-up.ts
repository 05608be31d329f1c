import type { StoredObject } from './objects.ts';
import type { PreparedSend } from './prepare.ts';
import { oweQuota, payQuota } from './quota-tasks.ts';
import type { MailboxWorld } from './world.ts';

/**
 * Takes back what was done outside the transaction. The quota is told through the durable task list, because a lost
 * answer must not leave a count behind; objects that stay are found by the orphan sweep.
 */
export async function giveUp(
  world: MailboxWorld,
  send: PreparedSend,
  objects: StoredObject[],
  reserved: boolean,
): Promise<void> {
  if (reserved) {
    world.sql.transaction(() => {
      oweQuota(world, { op: 'release', ref: send.message_id, identity_id: world.owner.identity_id });
    });
    world.mark('submit.release_recorded');
    await payQuota(world);
  }
  try {
    await world.blobs.delete(objects.map(({ key }) => key));
  } catch (error) {
    world.log('warn', 'orphan_left', { message_id: send.message_id, error: errorName(error) });
  }
}

export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
