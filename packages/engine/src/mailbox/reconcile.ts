import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { deliveryTo, findNamed, type Meant } from './provider-ids.ts';
import type { MessageRow } from './rows.ts';
import type { MailboxWorld } from './world.ts';

export type Candidate = { kind: 'none' } | { kind: 'several' } | ({ kind: 'one' } & Meant);

/**
 * The message a report is about: the one that it names, else the only one that it can be about. A report that carries an
 * id of our own means that message and no other, whether it is here or not.
 */
export function findMeant(world: MailboxWorld, event: DeliveryEvent): Candidate {
  const named = findNamed(world.sql, event);
  if (named !== undefined) return { kind: 'one', ...named };
  return (event.our_message_id ?? null) === null ? onlyCandidate(world, event) : { kind: 'none' };
}

/**
 * The uncertain send that an event with an unknown provider id must be about: same sender, recipient and subject,
 * uncertain since about the time of the event. Only a single candidate counts; between several nobody can choose.
 */
function onlyCandidate({ sql }: MailboxWorld, event: DeliveryEvent): Candidate {
  if (event.subject === null || event.provider_message_id === null) return { kind: 'none' };
  const [row, second] = sql.all<MessageRow>(
    `SELECT m.* FROM messages m JOIN deliveries d ON d.message_rowid = m.rowid
     WHERE m.direction = 'outbound' AND m.status = 'uncertain' AND m.provider_message_id IS NULL
       AND m.from_address = ? AND d.address = ? AND d.status = 'uncertain' AND m.subject = ?
       AND d.updated_at BETWEEN ? AND ? LIMIT 2`,
    event.sender,
    event.recipient,
    event.subject,
    event.occurred_at - LIMITS.reconcile_before_ms,
    event.occurred_at + LIMITS.reconcile_after_ms,
  );
  if (row === undefined) return { kind: 'none' };
  if (second !== undefined) return { kind: 'several' };
  return { kind: 'one', row, delivery: deliveryTo(sql, row, event.recipient) };
}
