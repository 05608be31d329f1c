import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { WebhookReceiver } from '@pmail/testkit/webhook-receiver.ts';
import type { Place } from '../load/place.ts';

/** A subscriber to everything that happens in the tenant, which verifies each delivery as a customer would. */
export interface Subscriber {
  receiver: WebhookReceiver;
  path: string;
  secret: string;
  /** Unix ms; of what happened before nobody is told. */
  since: number;
}

export async function subscribe(place: Place, run: string): Promise<Subscriber> {
  const receiver = await WebhookReceiver.start();
  const path = `/demo-${run}`;
  const { client, tenant } = place;
  // Those of earlier runs lead to receivers that are gone.
  const { body: earlier } = await client.call('webhooks.listOfTenant', {
    params: { tenant_id: tenant },
    query: { limit: 100 },
  });
  for (const { id } of earlier.data) await client.call('webhooks.delete', { params: { webhook_id: id } });
  const { body } = await client.call('webhooks.createOfTenant', {
    params: { tenant_id: tenant },
    body: { url: `${receiver.origin}${path}`, events: ['*'], description: `demo ${run}` },
  });
  const secret = body.secret ?? '';
  receiver.secrets.set(path, [secret]);
  return { receiver, path, secret, since: Date.parse(body.created_at) };
}

const LIMIT_MS = 60_000;
const SHOWN = 8;

/**
 * Waits until the subscriber has every event of a list, and prints what came, each mailbox in the order of its sequence.
 *
 * @returns what is wrong with it
 */
export async function printDeliveries(
  { receiver, path }: Subscriber,
  place: Place,
  events: EventEnvelope[],
): Promise<string[]> {
  const ends = Date.now() + LIMIT_MS;
  const missing = (): EventEnvelope[] => {
    const got = new Set(receiver.at(path).map(({ event }) => event.id));
    return events.filter(({ id }) => !got.has(id));
  };
  while (missing().length > 0 && Date.now() < ends) {
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
  }
  const received = receiver.at(path);
  const unique = [...new Map(received.map((entry) => [entry.event.id, entry])).values()];
  const faults = missing().map(({ type, id }) => `the subscriber was never told of ${type} ${id}`);
  for (const { event, verified_by: by } of received) if (by.length !== 1) faults.push(`${event.id} did not verify`);
  for (const { id, address } of [place.sender, place.desk, place.garage]) {
    const own = unique
      .filter(({ event }) => event.identity_id === id)
      .sort((a, b) => (a.event.sequence ?? 0) - (b.event.sequence ?? 0));
    console.log(`\n  ${address}: ${own.length} events, by sequence`);
    for (const { event, verified_by: by } of shorten(own)) {
      console.log(
        `    ${String(event.sequence).padStart(4)}  ${event.type.padEnd(20)}  ${event.id}  ${by.length === 1 ? 'verified' : 'NOT VERIFIED'}`,
      );
    }
    if (own.length > SHOWN * 2) console.log(`    … and ${own.length - SHOWN * 2} between them`);
  }
  console.log(`\n  ${received.length} deliveries of ${unique.length} events, all signatures checked`);
  return faults;
}

/** The first and the last of a long list. */
function shorten<T>(list: T[]): T[] {
  return list.length <= SHOWN * 2 ? list : [...list.slice(0, SHOWN), ...list.slice(-SHOWN)];
}
