import { cloudflareEvent } from '@pmail/core/delivery/cloudflare-event.ts';
import { consumeEvent } from '@pmail/engine/consumers/event.ts';
import { ACK, type Disposition } from '@pmail/engine/consumers/world.ts';
import type { Log } from '@pmail/engine/ports.ts';
import type { Env } from '../env.ts';
import { newId } from '../ports/random.ts';
import { runBatch } from './batch.ts';
import { consumerWorld } from './world.ts';

/**
 * The queue of Cloudflare's reports. Those of a batch go side by side: each is mostly waiting, a mailbox takes them one
 * after the other anyway, and in which order they come does not matter to it.
 */
export async function consumeDelivery(batch: MessageBatch<unknown>, env: Env, log: Log): Promise<void> {
  const { queue } = batch;
  await Promise.all(
    batch.messages.map((message) => runBatch({ queue, messages: [message] }, log, (body) => delivery(env, body))),
  );
}

async function delivery(env: Env, body: unknown): Promise<Disposition> {
  const world = consumerWorld(env, newId('req', Date.now()), null);
  const parsed = cloudflareEvent(body);
  if (parsed.kind === 'event') return consumeEvent(world, parsed.event);
  world.count(parsed.kind === 'unknown_type' ? 'delivery_unknown_type_total' : 'delivery_unparsable_total');
  return ACK;
}
