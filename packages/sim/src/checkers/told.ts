import { type Evidence, mailbox, messagesOf, traceOf, type Violation } from './evidence.ts';

/** Statuses of a message, and of a recipient, that are told as events of their own. */
const OF_MESSAGE = ['canceled', 'rejected', 'failed', 'uncertain'];
const OF_RECIPIENT = ['delivered', 'deferred', 'bounced', 'complained'];

/** An event, as far as it says what happened to whom. */
interface Told {
  type: string;
  data: { message_id?: string; recipient?: string; message?: { id: string } };
}

/** I9: what happened to a message was told, each change once: an event is written with its change or not at all. */
export function everythingTold(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const identity of evidence.identities) {
    const { sql, restored } = mailbox(evidence, identity);
    // What a mailbox that was put back had told before is not there to compare.
    if (restored) continue;
    const ids = new Map(messagesOf(evidence, identity).map(({ rowid, id }) => [rowid, id as string]));
    const told = new Map<string, number>();
    for (const { payload_json: payload } of sql.all<{ payload_json: string }>('SELECT payload_json FROM outbox')) {
      const { type, data } = JSON.parse(payload) as Told;
      count(told, `${type} ${data.message_id ?? data.message?.id} ${data.recipient ?? ''}`);
    }
    const happened = new Map<string, number>();
    for (const { rowid, address, new: status } of traceOf(evidence, identity)) {
      const names = address === null ? OF_MESSAGE : OF_RECIPIENT;
      if (names.includes(status)) count(happened, `message.${status} ${ids.get(rowid)} ${address ?? ''}`);
    }
    const left = sql.all<{ id: string }>(
      "SELECT id FROM messages WHERE accepted = 1 AND id NOT IN (SELECT substr(k, 10) FROM meta WHERE k LIKE 'dispatch:%')",
    );
    // Of mail that nobody knew to be accepted a report tells it, with an event of its own.
    for (const { id } of left) {
      if (!told.has(`message.sent ${id} `) && !told.has(`message.reconciled ${id} `))
        happened.set(`message.sent ${id} `, 1);
    }
    for (const [what, times] of happened) {
      const n = told.get(what) ?? 0;
      if (n !== times) violations.push({ invariant: 'I9', text: `${what} happened ${times} times, told ${n} times` });
    }
  }
  return violations;
}

function count(sums: Map<string, number>, what: string): void {
  sums.set(what, (sums.get(what) ?? 0) + 1);
}
