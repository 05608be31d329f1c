import { type Evidence, mailbox, type Violation } from './evidence.ts';

/** I4: what a mailbox counts about its threads and the people it writes with equals a recount of its rows. */
export function mailboxCounts(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const identity of evidence.identities) {
    const { sql } = mailbox(evidence, identity);
    const wrong = (text: string): void => {
      violations.push({ invariant: 'I4', text: `${identity.address}: ${text}` });
    };
    for (const row of sql.all<ThreadCount>(THREADS_SQL)) {
      if (row.message_count !== row.n) wrong(`${row.id} counts ${row.message_count} messages, has ${row.n}`);
      if (row.unread_count !== row.u) wrong(`${row.id} counts ${row.unread_count} unread, has ${row.u}`);
    }
    const written = countsOf(sql.all<Count>(WRITTEN_SQL));
    const heard = countsOf(sql.all<Count>(HEARD_SQL));
    const contacts = sql.all<ContactCount>('SELECT address, inbound_count, outbound_count FROM contacts');
    for (const { address, inbound_count: inbound, outbound_count: outbound } of contacts) {
      const [from, to] = [heard.get(address) ?? 0, written.get(address) ?? 0];
      if (inbound !== from) wrong(`${address} counts ${inbound} mails from it, there are ${from}`);
      if (outbound !== to) wrong(`${address} counts ${outbound} mails to it, there are ${to}`);
      heard.delete(address);
      written.delete(address);
    }
    for (const address of [...heard.keys(), ...written.keys()]) wrong(`${address} has mail and is no contact`);
  }
  return violations;
}

interface ThreadCount {
  id: string;
  message_count: number;
  n: number;
  unread_count: number;
  u: number;
}

interface ContactCount {
  address: string;
  inbound_count: number;
  outbound_count: number;
}

interface Count {
  address: string;
  n: number;
}

function countsOf(rows: Count[]): Map<string, number> {
  return new Map(rows.map(({ address, n }) => [address, n]));
}

const THREADS_SQL = `SELECT t.id, t.message_count, t.unread_count, COUNT(m.rowid) AS n,
    COALESCE(SUM(m.direction = 'inbound' AND m.read = 0), 0) AS u
  FROM threads t LEFT JOIN messages m ON m.thread_seq = t.seq GROUP BY t.seq`;

/** Whom the policy kept a mail from has not been written to. */
const WRITTEN_SQL = `SELECT address, COUNT(*) AS n FROM deliveries
  WHERE NOT (status = 'suppressed' AND COALESCE(smtp_response, '') LIKE 'policy: %') GROUP BY address`;

const HEARD_SQL = `SELECT from_address AS address, COUNT(*) AS n FROM messages
  WHERE direction = 'inbound' AND from_address IS NOT NULL GROUP BY from_address`;
