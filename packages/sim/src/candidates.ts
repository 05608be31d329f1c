import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { EventAnswer } from '@pmail/engine/mailbox/apply-event.ts';
import type { Sql } from '@pmail/engine/sql.ts';

interface Uncertain {
  id: MessageId;
  from_address: string;
  subject: string | null;
  since: number;
}

/**
 * Whether a report was taken to be about a message that it does not mean: one that it does not name, or one of several
 * that it could be about. Told in words, or null.
 *
 * @param since when the mailbox was asked; what has become uncertain after that was no candidate
 */
export function misjudged(
  sql: Sql,
  event: DeliveryEvent,
  since: number,
  answer: Exclude<EventAnswer, { kind: 'not_found' }>,
): string | null {
  const named = event.our_message_id ?? null;
  if (named !== null) {
    return named === answer.message_id ? null : `${event.event_id} names ${named} and went to ${answer.message_id}`;
  }
  if (answer.kind !== 'reconciled') return null;
  // A relay's id is made of ours, and the first of several calls for one message has told it.
  if (event.provider_message_id?.endsWith(`:${answer.message_id}`) === true) return null;
  const others = sql
    .all<Uncertain>(
      `SELECT m.id, m.from_address, m.subject, d.updated_at AS since FROM deliveries d
       JOIN messages m ON m.rowid = d.message_rowid
       WHERE d.address = ? AND d.status = 'uncertain' AND m.status = 'uncertain' AND m.provider_message_id IS NULL`,
      event.recipient,
    )
    .filter((other) => other.id !== answer.message_id && other.since < since && couldBe(other, event));
  return others.length === 0 ? null : `${event.event_id} could mean ${answer.message_id} or ${others[0]?.id}`;
}

function couldBe({ from_address: from, subject, since }: Uncertain, event: DeliveryEvent): boolean {
  return (
    from === event.sender &&
    subject === event.subject &&
    since >= event.occurred_at - LIMITS.reconcile_before_ms &&
    since <= event.occurred_at + LIMITS.reconcile_after_ms
  );
}
