import type { EventId } from '@pmail/core/ids.ts';
import type { WebhookJob } from '@pmail/core/queue/jobs.ts';
import { indexEvents } from '@pmail/engine/directory/events.ts';
import type { EventSink, OutboxEvent } from '@pmail/engine/ports.ts';
import type { Db } from '@pmail/engine/sql.ts';

/** Takes a batch of a mailbox's events into the index and, where anybody listens, to the queue of those who are told. */
export async function tellEvents(
  db: Db,
  queue: Queue<WebhookJob>,
  events: OutboxEvent[],
): ReturnType<EventSink['dispatch']> {
  const { taken, known, listened } = await indexEvents(db, events, Date.now());
  if (taken === null && listened) await queue.sendBatch(events.map(({ id }) => ({ body: fanoutJob(id) })));
  return { taken, known };
}

export function fanoutJob(id: EventId): WebhookJob {
  return { v: 1, kind: 'fanout', event_id: id };
}
