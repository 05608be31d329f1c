import type { Address } from '@pmail/core/address/address.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { type Route, routeSender } from '../directory/routing.ts';
import type { ReportedIds } from '../mailbox/learn-ids.ts';
import type { ConsumerWorld } from './world.ts';

/** What one notification of a provider says: what happened to recipients, or under which ids it has a message. */
export interface Reports {
  events: DeliveryEvent[];
  learned: ReportedIds | null;
}

export type ReportsWorld = Pick<ConsumerWorld, 'db' | 'count' | 'mailbox' | 'outbound'>;

/**
 * Hands a notification on: each event to the queue, ids to the mailbox that sent the message. Done again after a fault it
 * changes nothing more, because every event has its name. What belongs to nobody here is counted and dropped.
 */
export async function handOnReports(world: ReportsWorld, { events, learned }: Reports): Promise<void> {
  const routes = new Map<Address, Promise<Route | undefined>>();
  const routeOf = (sender: Address): Promise<Route | undefined> => {
    const route = routes.get(sender) ?? routeSender(world.db, sender);
    routes.set(sender, route);
    return route;
  };
  for (const event of events) {
    const route = await routeOf(event.sender);
    if (route === undefined) {
      world.count('delivery_unroutable_total');
      continue;
    }
    const { tenant_id, identity_id } = route;
    await world.outbound.send({ v: 1, kind: 'transport_event', tenant_id, identity_id, event });
  }
  if (learned === null) return;
  const route = await routeOf(learned.sender);
  if (route === undefined || route.mailbox_do_id === '') world.count('delivery_unroutable_total');
  else await world.mailbox(route).learnReportedIds(learned);
}
