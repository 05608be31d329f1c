import type { IdentityId } from '@pmail/core/ids.ts';
import { deadline, pullBack, setDeadline } from '../alarms.ts';
import type { QuotaEngineWorld } from './reserve.ts';
import { applyTask, dropHold } from './settle.ts';

const BATCH = 50;

/**
 * Looks at holds past their time. A hold is the only trace that a crash between the reservation and the commit of a
 * send leaves, so its mailbox is asked: a send that never came to be, or was canceled, gets hold and day's count back,
 * one still queued keeps them, one that has ended frees the hold.
 */
export async function expireHolds(world: QuotaEngineWorld): Promise<void> {
  const now = world.now();
  const expired = world.sql.all<{ ref: string; identity_id: string }>(
    'SELECT ref, identity_id FROM holds WHERE expires_at <= ? ORDER BY expires_at LIMIT ?',
    now,
    BATCH,
  );
  let unreachable = false;
  for (const { ref, identity_id: identity } of expired) {
    try {
      const state = await world.sendState(identity as IdentityId, ref);
      world.mark('quota.hold_expired');
      // A release that is still on its way finds this one, and changes nothing.
      if (state === 'unknown' || state === 'canceled')
        applyTask(world, { op: 'release', ref, identity_id: identity as IdentityId });
      else if (state === 'ended') dropHold(world, ref);
      else
        applyTask(world, {
          op: 'extend',
          ref,
          identity_id: identity as IdentityId,
          until: now + world.waits.hold_ttl_ms,
        });
    } catch (error) {
      unreachable = true;
      world.log('warn', 'quota_hold_check_failed', { ref, error: error instanceof Error ? error.name : 'unknown' });
    }
  }
  world.sql.transaction(() => {
    const next = world.sql.first<{ at: number | null }>('SELECT MIN(expires_at) AS at FROM holds')?.at ?? null;
    const retry = now + world.waits.quota_task_retry_ms;
    const at = next === null ? null : unreachable || next <= now ? Math.max(next, retry) : next;
    if (deadline(world.sql, 'holds') !== at) setDeadline(world, 'holds', at);
  });
}

/** Holds of a time when the clock ran ahead are looked at now, and not when that time has really come. */
export function pullHoldsBack(world: QuotaEngineWorld): void {
  pullBack(world, (now, farthest) => {
    world.sql.run('UPDATE holds SET expires_at = ? WHERE expires_at > ?', now, farthest);
  });
}
