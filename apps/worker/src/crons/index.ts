import { LIMITS } from '@pmail/core/limits.ts';
import { deleteExpiredRequests } from '@pmail/engine/directory/idempotency.ts';
import { routeIdentity } from '@pmail/engine/directory/routing.ts';
import { deleteSpentSigningKeys } from '@pmail/engine/directory/signing-keys.ts';
import { takeForPoke } from '@pmail/engine/directory/work.ts';
import { sweepWebhooks } from '@pmail/engine/webhooks/fan-out.ts';
import { webhookWorld } from '../consumers/webhook-world.ts';
import type { Env } from '../env.ts';
import { createLog } from '../log.ts';
import { mailboxStub } from '../objects/remote.ts';
import { newId } from '../ports/random.ts';
import { d1 } from '../ports/sql.ts';
import { mintObjects } from './mint.ts';
import { deleteOld } from './retention.ts';
import { rollUpUsage } from './usage.ts';

/** A mailbox with work is poked at least this often, should the platform have lost its alarm. */
const POKE_EVERY_MS = 5 * 60_000;
const POKES_PER_RUN = 200;
const EXPIRED_PER_RUN = 1_000;

export async function runCron(cron: string, env: Env): Promise<void> {
  if (cron === '* * * * *') {
    await mintObjects(env);
    await pokeMailboxes(env);
    await sweepWebhooks(webhookWorld(env, newId('req', Date.now())));
    return;
  }
  if (cron === '*/15 * * * *') {
    await rollUpUsage(env);
    const now = Date.now();
    await deleteExpiredRequests(d1(env.DB), now, EXPIRED_PER_RUN);
    await deleteOld(env, now);
    // An isolate may remember a key for a while after its time.
    await deleteSpentSigningKeys(d1(env.DB), now - 2 * LIMITS.keyring_cache_ms);
    return;
  }
  createLog(env.PM_LOG_LEVEL)('error', 'unknown_cron', { cron });
}

/** Entering a mailbox is enough: it puts a lost alarm back from what it has stored. */
async function pokeMailboxes(env: Env): Promise<void> {
  const log = createLog(env.PM_LOG_LEVEL, { cron: 'poke' });
  const db = d1(env.DB);
  const now = Date.now();
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
