import { type Address, domainOf, type Mailbox } from '@pmail/core/address/address.ts';
import type { Sql } from '../sql.ts';

/** People this mailbox has exchanged mail with. */

export function isKnownContact(sql: Sql, address: Address): boolean {
  return (
    sql.first('SELECT 1 FROM contacts WHERE address = ? AND (inbound_count > 0 OR outbound_count > 0)', address) !==
    undefined
  );
}

export function hasWrittenTo(sql: Sql, address: Address): boolean {
  return sql.first('SELECT 1 FROM contacts WHERE address = ? AND outbound_count > 0', address) !== undefined;
}

export function countContact(
  sql: Sql,
  contact: Mailbox,
  direction: 'inbound' | 'outbound',
  at: number,
  threadSeq: number,
): void {
  const inbound = direction === 'inbound' ? 1 : 0;
  sql.run(
    `INSERT INTO contacts (address, name, domain, first_seen_at, last_seen_at, inbound_count, outbound_count, last_thread_seq)
     VALUES (?1, NULLIF(?2, ''), ?3, ?4, ?4, ?5, ?6, ?7)
     ON CONFLICT (address) DO UPDATE SET name = COALESCE(NULLIF(?2, ''), name), last_seen_at = MAX(last_seen_at, ?4),
       inbound_count = inbound_count + ?5, outbound_count = outbound_count + ?6, last_thread_seq = ?7`,
    contact.address,
    contact.name,
    domainOf(contact.address),
    at,
    inbound,
    1 - inbound,
    threadSeq,
  );
}
