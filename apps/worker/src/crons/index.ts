import { LIMITS } from '@pmail/core/limits.ts';
import { deleteExpiredRequests } from '@pmail/engine/directory/idempotency.ts';
import { routeIdentity } from '@pmail/engine/directory/routing.ts';
import { deleteSpentSigningKeys } from '@pmail/engine/directory/signing-keys.ts';
import { takeForPoke } from '@pmail/engine/directory/work.ts';
import { sweepWebhooks } from '@pmail/engine/webhooks/fan-out.ts';
import { webhookWorld } from '../consumers/webhook-world.ts';
import type { Env } from '../env.ts';
import { createLog, errorPlace } from '../log.ts';
import { mailboxStub } from '../objects/remote.ts';
import { newId } from '../ports/random.ts';
import { d1 } from '../ports/sql.ts';
import { mintObjects } from './mint.ts';
import { deleteOldDeliveryRows, deleteOldEventRows } from './retention.ts';
import { rollUpUsage } from './usage.ts';

/** A mailbox with work is poked at least this often, should the platform have lost its alarm. */
const POKE_EVERY_MS = 5 * 60_000;
const POKES_PER_RUN = 200;
const EXPIRED_PER_RUN = 1_000;

type Step = (env: Env, now: number) => Promise<unknown>;

/** What each cron does, in this order. What takes few calls comes first, for an invocation has only so many. */
const STEPS: Record<string, Record<string, Step>> = {
  '* * * * *': {
    objects: mintObjects,
    pokes: pokeMailboxes,
    webhooks: (env, now) => sweepWebhooks(webhookWorld(env, newId('req', now))),
  },
  '*/15 * * * *': {
    requests: (env, now) => deleteExpiredRequests(d1(env.DB), now, EXPIRED_PER_RUN),
    // An isolate may remember a key for a while after its time.
    signing_keys: (env, now) => deleteSpentSigningKeys(d1(env.DB), now - 2 * LIMITS.keyring_cache_ms),
    deliveries: deleteOldDeliveryRows,
    usage: rollUpUsage,
    events: deleteOldEventRows,
  },
};

/** Every step has its turn, whatever became of those before it; a run in which one failed has failed, and says which. */
export async function runCron(cron: string, env: Env): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { cron });
  const steps = STEPS[cron];
  if (steps === undefined) return log('error', 'unknown_cron', {});
  const failed: string[] = [];
  for (const [step, run] of Object.entries(steps)) {
    try {
      await run(env, Date.now());
    } catch (error) {
      log('error', 'cron_step_failed', { step, error: errorPlace(error) });
      failed.push(step);
    }
  }
  if (failed.length > 0) throw new Error(`steps of the cron failed: ${failed.join(', ')}`);
}

/** Entering a mailbox is enough: it puts a lost alarm back from what it has stored. */
async function pokeMailboxes(env: Env, now: number): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { cron: 'poke' });
  const db = d1(env.DB);
  const requestId = newId('req', now);
  for (const identity of await takeForPoke(db, now - POKE_EVERY_MS, now, POKES_PER_RUN)) {
    try {
      const route = await routeIdentity(db, identity);
      if (route === undefined || route.mailbox_do_id === '') continue;
      await mailboxStub(env, route.mailbox_do_id).poke({ v: 1, ...route, request_id: requestId });
    } catch (error) {
      log('warn', 'poke_failed', { identity_id: identity, error: error instanceof Error ? error.name : 'unknown' });
    }
  }
}
