import type { Address } from '@pmail/core/address/address.ts';
import type { DeliveryEvent, LearnedId } from '@pmail/core/delivery/events.ts';
import type { OutboundJob } from '@pmail/core/queue/jobs.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import { type Route, routeSender } from '../directory/routing.ts';
import type { ConsumerWorld } from './world.ts';

/** What one notification of a provider says: what happened to recipients, or under which ids it has a message. */
export interface Reports {
  events: DeliveryEvent[];
  learned: LearnedId | null;
}

export type ReportsWorld = Pick<ConsumerWorld, 'db' | 'count' | 'outbound'>;

/**
 * Hands a notification on to the queue, one job for each recipient. Done again after a fault it changes nothing more,
 * because every event has its name. What belongs to nobody here is counted and dropped.
 */
export async function handOnReports(world: ReportsWorld, { events, learned }: Reports): Promise<void> {
  const routes = new Map<Address, Promise<Route | undefined>>();
  const handOn = async (sender: Address, job: (owner: Owner) => OutboundJob): Promise<void> => {
    const known = routes.get(sender) ?? routeSender(world.db, sender);
    routes.set(sender, known);
    const route = await known;
    if (route === undefined) return world.count('delivery_unroutable_total');
    const { tenant_id, identity_id } = route;
    await world.outbound.send(job({ tenant_id, identity_id }));
  };
  for (const event of events) {
    await handOn(event.sender, (owner) => ({ v: 1, kind: 'transport_event', ...owner, event }));
  }
  if (learned !== null) await handOn(learned.sender, (owner) => ({ v: 1, kind: 'learned_id', ...owner, learned }));
}
