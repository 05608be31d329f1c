import { domainOf, localPartOf } from '@pmail/core/address/address.ts';
import type { AddressFacts } from '@pmail/core/policy/types.ts';
import { findMessage } from './messages.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

/** The detail that brings an answer to its thread, made by who holds the key; null where there is none. */
export interface ThreadToken {
  thread_seq: number;
  token: string | null;
}

/**
 * The message leaves as the identity's platform address from now on: its own domain cannot carry it. Who it is from is what
 * its recipients will see, so that is what the row says, and the thread stays with that address. Call inside the
 * transaction that claims the call.
 */
export function fallBack(
  world: MailboxWorld,
  row: MessageRow,
  platform: AddressFacts,
  token: string | null,
): MessageRow {
  const { sql } = world;
  const { address, domain } = platform;
  const name = row.from_name ?? '';
  const replyTo =
    token === null || domain.reply_token !== 'subaddress'
      ? []
      : [{ address: `${localPartOf(address)}+${token}@${domain.name}`, name }];
  const flags = parseJson<string[]>(row.flags_json);
  sql.run(
    'UPDATE messages SET from_address = ?, sender_domain = ?, reply_to_json = ?, flags_json = ? WHERE rowid = ?',
    address,
    domainOf(address),
    JSON.stringify(replyTo),
    JSON.stringify([...flags, 'sent_via_fallback']),
    row.rowid,
  );
  sql.run('UPDATE threads SET fallback_pinned = 1 WHERE seq = ?', row.thread_seq);
  const after = findMessage(sql, row.id);
  if (after === undefined) throw new Error('message vanished');
  return after;
}
