import type { Sql } from '../sql.ts';
import type { MessageRow } from './rows.ts';

/** The ids under which providers know our messages. */

/**
 * Notes that a transport took a message, and under which id. The first id stays the one that is shown; the id of a
 * later call, for recipients that the first one put off, becomes an alias.
 */
export function recordAcceptance(
  sql: Sql,
  row: Pick<MessageRow, 'rowid' | 'provider_message_id'>,
  providerId: string | null,
  rfcId: string | null,
): void {
  sql.run(
    `UPDATE messages SET accepted = 1, provider_message_id = COALESCE(provider_message_id, ?),
       rfc_message_id = COALESCE(rfc_message_id, ?) WHERE rowid = ?`,
    providerId,
    rfcId,
    row.rowid,
  );
  if (providerId !== null && row.provider_message_id !== null && row.provider_message_id !== providerId) {
    addAlias(sql, row.rowid, providerId);
  }
}

export function addAlias(sql: Sql, rowid: number, alias: string): void {
  sql.run('INSERT OR IGNORE INTO message_aliases (alias, message_rowid) VALUES (?, ?)', alias, rowid);
}

/**
 * The outbound message a provider means by an id. A provider can use one id twice, so among several the newest that
 * was sent to the recipient counts.
 */
export function findByProviderId(sql: Sql, id: string, recipient: string): MessageRow | undefined {
  const rows = sql.all<MessageRow>(
    `SELECT * FROM messages WHERE direction = 'outbound' AND (provider_message_id = ?1
       OR rowid IN (SELECT message_rowid FROM message_aliases WHERE alias = ?1)) ORDER BY rowid DESC`,
    id,
  );
  if (rows.length <= 1) return rows[0];
  const sentTo = rows.find(
    ({ rowid }) =>
      sql.first('SELECT 1 FROM deliveries WHERE message_rowid = ? AND address = ?', rowid, recipient) !== undefined,
  );
  return sentTo ?? rows[0];
}
