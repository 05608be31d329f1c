import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { Taken } from '@pmail/testkit/provider-log.ts';
import type { Participant, Place } from '../load/place.ts';
import type { Send } from '../load/sends.ts';
import type { Fault } from '../load/verdict.ts';

/** What the API shows of a message in a list. */
export type Listed = Pick<MessageResource, 'id' | 'subject'>;

/** Every message that the sender's mailbox says it has sent or is about to send. */
export async function listOutbound(place: Place, owner: Participant): Promise<Listed[]> {
  const listed: Listed[] = [];
  let cursor: string | undefined;
  do {
    const { body } = await place.client.call('messages.list', {
      params: { identity_id: owner.id },
      query: { direction: 'outbound', limit: 100, cursor },
    });
    listed.push(...body.data);
    cursor = body.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return listed;
}

/**
 * Looks for what no client was ever told of. A message that was committed before the kill and left, while the repeat made
 * another one, is seen by nobody who asks for the answered ids alone. `listed` is the whole outbound mail of an identity
 * that only these sends use, `taken` the provider's log since they began; each send has a subject of its own.
 */
export function judgeLedger(sends: readonly Send[], listed: readonly Listed[], taken: readonly Taken[]): Fault[] {
  const faults: Fault[] = [];
  const known = new Map<string, string>();
  for (const { title, answers } of sends) for (const { id } of answers) known.set(id, title);
  const seen = new Map<string, number>();
  for (const { id } of listed) seen.set(id, (seen.get(id) ?? 0) + 1);
  for (const [id, title] of known) {
    const times = seen.get(id) ?? 0;
    if (times === 0) faults.push({ invariant: 'I2', text: `${title}: its message ${id} is not listed` });
    if (times > 1) faults.push({ invariant: 'I1', text: `${title}: its message ${id} is listed ${times} times` });
  }
  for (const { id, subject } of listed) {
    if (known.has(id)) continue;
    const owners = sends.filter(({ body }) => body.subject === subject);
    const [owner] = owners;
    if (owner === undefined || owners.length > 1) {
      faults.push({ invariant: 'I5', text: `${id} (${subject ?? 'no subject'}) is a message that nobody asked for` });
      continue;
    }
    // A key that never got an answer may have its one message all the same.
    const first = owner.answers.length === 0 && ![...known.values()].includes(owner.title);
    if (!first) faults.push({ invariant: 'I1', text: `${owner.title}: a second message ${id} under its key` });
    else known.set(id, owner.title);
  }
  for (const id of new Set(taken.map(({ message_id }) => message_id))) {
    if (!known.has(id))
      faults.push({ invariant: 'I1', text: `the provider took ${id}, which is the message of no key` });
  }
  return faults;
}
