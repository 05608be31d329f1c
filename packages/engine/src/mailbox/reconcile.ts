import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { findMessage } from './messages.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

export type Candidate = { kind: 'none' } | { kind: 'several' } | { kind: 'one'; row: MessageRow };

/**
 * Finds the uncertain send that an event with an unknown provider id must be about: same sender, recipient and subject,
 * uncertain since about the time of the event. Only a single candidate counts; between several nobody can choose. The
 * match gives the message its provider id, so the events of its other recipients find it directly.
 */
export function reconcile(world: MailboxWorld, event: DeliveryEvent): Candidate {
  const { sql } = world;
  if (event.subject === null || event.provider_message_id === null) return { kind: 'none' };
  const rows = sql.all<MessageRow>(
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
  const [row] = rows;
  if (row === undefined) return { kind: 'none' };
  if (rows.length > 1) return { kind: 'several' };
  const flags = parseJson<string[]>(row.flags_json);
  sql.run(
    'UPDATE messages SET provider_message_id = ?, flags_json = ? WHERE rowid = ?',
    event.provider_message_id,
    JSON.stringify(flags.includes('reconciled') ? flags : [...flags, 'reconciled']),
    row.rowid,
  );
  const after = findMessage(sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  return { kind: 'one', row: after };
}
