import { type DeliveryStatus, isTerminal } from '@pmail/core/delivery/status.ts';
import { messageOf } from '../client.ts';
import type { SimIdentity } from '../population.ts';
import type { Attempt } from '../remembered.ts';
import {
  deliveriesOf,
  type Evidence,
  type MessageTrace,
  mailbox,
  messagesOf,
  rowsOf,
  type Violation,
} from './evidence.ts';

/** I1: no recipient is in a second transport call unless the first is proven not to have taken it. */
export function oneCall(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const open = new Map<string, string>();
  for (const call of evidence.deployment.provider.log) {
    for (const recipient of call.recipients) {
      const id = `${call.message_id} ${recipient}`;
      const before = open.get(id);
      if (before !== undefined) {
        violations.push({ invariant: 'I1', text: `second call for ${id}: the first was ${before}` });
      }
      if (call.accepted.includes(recipient)) open.set(id, 'accepted');
      else if (!call.answered || !call.refused.includes(recipient)) open.set(id, 'not proven refused');
    }
  }
  violations.push(...overlapping(evidence).map((text) => ({ invariant: 'I1', text })));
  for (const identity of evidence.identities) {
    const copies = mailbox(evidence, identity).sql.all<{ rfc_message_id: string; n: number }>(
      `SELECT rfc_message_id, COUNT(*) AS n FROM messages WHERE direction = 'inbound'
       GROUP BY rfc_message_id HAVING COUNT(*) > 1`,
    );
    for (const { rfc_message_id, n } of copies) {
      violations.push({ invariant: 'I1', text: `${n} copies of ${rfc_message_id} in ${identity.address}` });
    }
    const { forgotten } = mailbox(evidence, identity);
    for (const { attempts } of [rowsOf(evidence, identity), ...forgotten]) {
      violations.push(...oneAfterAnother(attempts).map((text) => ({ invariant: 'I1', text })));
    }
  }
  return violations;
}

/** Calls for one message that overlap: the second began when nobody could know how the first had ended. */
function overlapping({ deployment }: Evidence): string[] {
  const wrong: string[] = [];
  for (const [id, calls] of Map.groupBy(deployment.provider.exchanges, ({ message_id }) => message_id)) {
    calls.forEach(({ begun_at: begun }, index) => {
      if (calls.slice(0, index).some(({ ended_at: ended }) => ended > begun)) {
        wrong.push(`a call for ${id} began before the one before it had ended`);
      }
    });
  }
  return wrong;
}

/** By the mailbox's own record, another call only after one of which it is known in time whom it was not taken for. */
function oneAfterAnother(attempts: readonly Attempt[]): string[] {
  return attempts.flatMap(({ message_rowid: row, n, result, late, detail_json: detail }, index) => {
    if (attempts[index + 1]?.message_rowid !== row) return [];
    if (late === 1) return [`attempt ${n} of row ${row} was over before it ended ${result}, yet another began`];
    if (result === 'retry_later' || result === 'suppressed') return [];
    const { deferred = [] } = JSON.parse(detail ?? '{}') as { deferred?: string[] };
    if (result === 'accepted' && deferred.length > 0) return [];
    return [`attempt ${n} of row ${row} ended ${result}, yet another began`];
  });
}

/** I2: every accepted send has ended, or says that its fate is not known, or waits only for the provider. */
export function nothingLost(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const lost = (text: string): void => {
    violations.push({ invariant: 'I2', text });
  };
  for (const intent of evidence.intents) {
    const id = messageOf(intent);
    if (id === undefined) {
      if (intent.refused === null) lost(`${intent.key} never got an answer`);
      continue;
    }
    if (!messagesOf(evidence, intent.identity).some((message) => message.id === id))
      lost(`${id} was accepted and is gone`);
  }
  const known = new Set(evidence.identities.flatMap((one) => messagesOf(evidence, one).map(({ id }) => id as string)));
  for (const { message_id: id } of evidence.deployment.provider.log) {
    if (!known.has(id)) lost(`${id} was handed over, and no mailbox knows it`);
  }
  for (const identity of evidence.identities) {
    const messages = messagesOf(evidence, identity).filter(({ direction }) => direction === 'outbound');
    const deliveries = deliveriesOf(evidence, identity);
    for (const message of messages) {
      if (!evidence.deployment.store.objects.has(message.raw_r2_key)) lost(`${message.id} has no stored copy`);
      if (message.status === 'canceled') continue;
      if (message.status === 'queued') lost(`${message.id} is still queued`);
      for (const { address, status } of deliveries.filter((row) => row.message_rowid === message.rowid)) {
        if (status === 'queued') lost(`${message.id} to ${address} is still queued`);
        if (mayStayOpen(evidence, identity, message, address, status)) continue;
        lost(`${message.id} to ${address} is ${status}, though its end was reported`);
      }
    }
  }
  return violations;
}

function mayStayOpen(
  evidence: Evidence,
  identity: SimIdentity,
  message: MessageTrace,
  address: string,
  status: DeliveryStatus,
): boolean {
  if (isTerminal(status) || status === 'queued') return true;
  // One that was put back has forgotten by what it went out: where a domain fell back, reports do not name it.
  if (status === 'uncertain' && mailbox(evidence, identity).restored) return true;
  // Where reports name our own id they find the message whatever is known of it.
  if (message.provider !== 'ses') {
    if (status === 'uncertain') return true;
    // A person's word is not the provider's: without its id no report can find the message.
    if (message.provider_message_id === null) return status === 'submitted';
  }
  // What a test provider has to report is owed from the record of its answer on. When the call broke off there is none:
  // the report of one copy that arrived all the same, and a person's word, say nothing about the other recipients.
  if (message.provider_message_id?.startsWith('test-')) {
    // A mailbox that was put back has forgotten reports of its own that had come by then.
    if (mailbox(evidence, identity).restored) return true;
    return address.startsWith('deferred@') || !acceptanceRecorded(evidence, identity, message);
  }
  const { provider } = evidence.deployment;
  const taken = provider.log.some((call) => call.message_id === message.id && call.accepted.includes(address));
  return !taken || !provider.willEnd(address);
}

function acceptanceRecorded(evidence: Evidence, identity: SimIdentity, { rowid }: MessageTrace): boolean {
  const { sql } = mailbox(evidence, identity);
  return sql.first("SELECT 1 FROM attempts WHERE message_rowid = ? AND result = 'accepted'", rowid) !== undefined;
}

/** S14: what is canceled was not taken by anybody, as far as anyone can tell. */
export function canceledUnsent(evidence: Evidence): Violation[] {
  const canceled = new Set(
    evidence.identities.flatMap((identity) =>
      messagesOf(evidence, identity)
        .filter(({ status }) => status === 'canceled')
        .map(({ id }) => id),
    ),
  );
  return evidence.deployment.provider.log
    .filter(({ message_id: id, answered, refused, recipients }) => {
      return canceled.has(id) && !(answered && refused.length === recipients.length);
    })
    .map(({ message_id: id }) => ({ invariant: 'S14', text: `${id} is canceled, and was handed over` }));
}
