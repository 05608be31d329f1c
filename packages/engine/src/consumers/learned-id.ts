import type { LearnedId } from '@pmail/core/delivery/events.ts';
import { routeSender } from '../directory/routing.ts';
import { untilOrphaned } from './event.ts';
import { ACK, type ConsumerWorld, type Disposition } from './world.ts';

/** A provider has told under which ids it took a message. They go to the mailbox of its sender, which may repeat. */
export async function consumeLearnedId(world: ConsumerWorld, learned: LearnedId): Promise<Disposition> {
  const route = await routeSender(world.db, learned.sender);
  if (route === undefined) {
    world.count('delivery_unroutable_total');
    return ACK;
  }
  return (await world.mailbox(route).learnId(learned)) ? ACK : untilOrphaned(world, learned.occurred_at);
}
