import type { EventEnvelope } from '@pmail/core/events/types.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { Place } from '../load/place.ts';
import type { Send } from '../load/sends.ts';

export function heading(text: string): void {
  console.log(`\n== ${text}`);
}

/** All events of the tenant's identities since a time, each mailbox's in its own order. */
export async function eventsSince(place: Place, since: number): Promise<EventEnvelope[]> {
  const events: EventEnvelope[] = [];
  let cursor: string | undefined;
  do {
    const { body } = await place.client.call('events.list', {
      query: {
        include: 'data',
        limit: 100,
        after: new Date(since).toISOString(),
        cursor,
      },
    });
    const page = body as { data: EventEnvelope[]; next_cursor: string | null };
    events.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return events.sort(
    (a, b) => Date.parse(a.occurred_at) - Date.parse(b.occurred_at) || (a.sequence ?? 0) - (b.sequence ?? 0),
  );
}

function messageIdOf(event: EventEnvelope): string | undefined {
  const { message_id, message } = event.data as { message_id?: string; message?: { id: string } };
  return message_id ?? message?.id;
}

/** What happened to each message, in the order it happened. */
export function printTimelines(sends: Send[], messages: Map<string, MessageResource>, events: EventEnvelope[]): void {
  for (const send of sends) {
    const id = send.answers[0]?.id;
    const message = id === undefined ? undefined : messages.get(id);
    if (message === undefined) continue;
    console.log(`\n${send.title}  ${message.id}  key ${send.key}`);
    console.log(`  ${time(message.received_at)}  accepted, ${message.deliveries?.length ?? 0} recipients`);
    printEvents(events.filter((entry) => messageIdOf(entry) === id));
    console.log(`  now ${message.status}${message.status_reason === null ? '' : ` (${message.status_reason})`}`);
  }
}

const RUN_SHOWN_MAX = 6;

/** One line per event; a long run of one kind is summed up. */
function printEvents(events: EventEnvelope[]): void {
  for (let index = 0; index < events.length; ) {
    const event = events[index];
    if (event === undefined) return;
    let end = index;
    while (events[end + 1]?.type === event.type) end++;
    const count = end - index + 1;
    if (count > RUN_SHOWN_MAX) {
      const last = time(events[end]?.occurred_at ?? event.occurred_at);
      console.log(`  ${time(event.occurred_at)}  ${event.type.padEnd(20)}  ${count} recipients, the last at ${last}`);
      index = end + 1;
    } else {
      console.log(`  ${time(event.occurred_at)}  ${describe(event)}`);
      index++;
    }
  }
}

function time(text: string): string {
  return text.slice(11, 23);
}

function describe({ type, data }: EventEnvelope): string {
  const { recipient, smtp_response, reason, provider, bounce_type, status } = data as Record<
    string,
    string | undefined
  >;
  const parts = [
    recipient,
    bounce_type,
    smtp_response,
    reason,
    status,
    provider === undefined ? undefined : `by ${provider}`,
  ];
  return [type.padEnd(20), ...parts.filter((part) => part !== undefined && part !== null)].join('  ');
}

/** One line per recipient; a message with very many of the same kind is summed up. */
export function printRecipients(sends: Send[], messages: Map<string, MessageResource>): void {
  const rows: string[][] = [['message', 'recipient', 'field', 'status', 'reply']];
  for (const send of sends) {
    const message = messages.get(send.answers[0]?.id ?? '');
    const deliveries = message?.deliveries ?? [];
    if (deliveries.length > 12) {
      const counts = new Map<string, number>();
      for (const { status } of deliveries) counts.set(status, (counts.get(status) ?? 0) + 1);
      const summary = [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
      rows.push([send.title, `${deliveries.length} recipients`, '', summary, '']);
      continue;
    }
    for (const { address, field, status, smtp_response } of deliveries) {
      rows.push([send.title, address, field, status, smtp_response ?? '']);
    }
  }
  const widths = rows[0]?.map((_cell, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows)
    console.log(`  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd());
}
