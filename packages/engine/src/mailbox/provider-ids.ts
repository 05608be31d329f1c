import type { DeliveryEvent, LearnedId } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { Sql } from '../sql.ts';
import { findMessage } from './messages.ts';
import type { DeliveryRow, MessageRow } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/** The ids under which providers, relays and recipients know our messages. */

type Named = Pick<MessageRow, 'rowid' | 'provider_message_id' | 'rfc_message_id'>;

/** Notes that a transport took a message, and under which ids. */
export function recordAcceptance(sql: Sql, row: Named, providerId: string | null, rfcId: string | null): void {
  sql.run('UPDATE messages SET accepted = 1 WHERE rowid = ?', row.rowid);
  recordIds(sql, row, providerId, rfcId);
}

/**
 * Notes ids of a message. The first of each kind stays the one that is shown; another one, of a later call for recipients
 * that the first call put off or from a relay that wrote its own, becomes an alias.
 */
export function recordIds(sql: Sql, row: Named, providerId: string | null, rfcId: string | null): void {
  const isNew = (id: string | null, known: string | null): id is string => id !== null && id !== known;
  if (!isNew(providerId, row.provider_message_id) && !isNew(rfcId, row.rfc_message_id)) return;
  sql.run(
    `UPDATE messages SET provider_message_id = COALESCE(provider_message_id, ?),
       rfc_message_id = COALESCE(rfc_message_id, ?) WHERE rowid = ?`,
    providerId,
    rfcId,
    row.rowid,
  );
  if (row.provider_message_id !== null && isNew(providerId, row.provider_message_id))
    addAlias(sql, row.rowid, providerId);
  if (row.rfc_message_id !== null && isNew(rfcId, row.rfc_message_id)) addAlias(sql, row.rowid, rfcId);
}

export function addAlias(sql: Sql, rowid: number, alias: string): void {
  sql.run('INSERT OR IGNORE INTO message_aliases (alias, message_rowid) VALUES (?, ?)', alias, rowid);
}

/** Where an id may stand, in the order in which it is looked for. */
const KNOWN_BY = [
  "SELECT * FROM messages WHERE direction = 'outbound' AND rfc_message_id = ? ORDER BY rowid DESC",
  "SELECT * FROM messages WHERE direction = 'outbound' AND provider_message_id = ? ORDER BY rowid DESC",
  `SELECT m.* FROM message_aliases a JOIN messages m ON m.rowid = a.message_rowid
   WHERE a.alias = ? AND m.direction = 'outbound'`,
] as const;

/** Outbound messages under an id, the newest first in each place: a provider can use one id twice. */
export function* knownBy(sql: Sql, id: string): Generator<MessageRow> {
  for (const query of KNOWN_BY) yield* sql.all<MessageRow>(query, id);
}

export type DeliveryRowWithIds = DeliveryRow & { provider_event_ids_json: string };

export interface Meant {
  row: MessageRow;
  /** Undefined when the message was not sent to the recipient of the report. */
  delivery: DeliveryRowWithIds | undefined;
}

/** The message that a report names: by an id of the world's, else by our own. One sent to its recipient goes first. */
export function findNamed(sql: Sql, event: DeliveryEvent): Meant | undefined {
  const { rfc_message_id: rfcId = null, message_ids: ids = [], provider_message_id: providerId, recipient } = event;
  let other: Meant | undefined;
  for (const id of [rfcId, ...ids, providerId]) {
    if (id === null) continue;
    for (const row of knownBy(sql, id)) {
      const delivery = deliveryTo(sql, row, recipient);
      if (delivery !== undefined) return { row, delivery };
      other ??= { row, delivery };
    }
  }
  const row = ourMessage(sql, event.our_message_id ?? null);
  const delivery = row === undefined ? undefined : deliveryTo(sql, row, recipient);
  return row !== undefined && delivery !== undefined ? { row, delivery } : other;
}

export function deliveryTo(sql: Sql, row: MessageRow, recipient: string): DeliveryRowWithIds | undefined {
  return sql.first<DeliveryRowWithIds>(
    'SELECT * FROM deliveries WHERE message_rowid = ? AND address = ?',
    row.rowid,
    recipient,
  );
}

export function ourMessage(sql: Sql, id: MessageId | null): MessageRow | undefined {
  const row = id === null ? undefined : findMessage(sql, id);
  return row?.direction === 'outbound' ? row : undefined;
}

/**
 * Notes ids that a provider told without saying anything else.
 *
 * @returns false when no message here is meant, at least not yet
 */
export function learnId(world: MailboxWorld, learned: LearnedId): boolean {
  const { sql } = world;
  return sql.transaction(() => {
    const [known] = knownBy(sql, learned.provider_message_id);
    const row = known ?? ourMessage(sql, learned.our_message_id);
    if (row === undefined) return false;
    if (row.status !== 'canceled') recordIds(sql, row, learned.provider_message_id, learned.rfc_message_id);
    return true;
  });
}
