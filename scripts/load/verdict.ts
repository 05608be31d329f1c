import { withoutDetail } from '@pmail/core/address/address.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { ProviderLog } from '@pmail/testkit/provider-log.ts';
import type { Participant, Place } from './place.ts';
import { isAtRest, type Send } from './sends.ts';

/** What is not as it should be, and the invariant that it breaks. */
export interface Fault {
  invariant: string;
  text: string;
}

/**
 * Holds what the API says against what the provider's own log and the receiving mailbox say: each key one message, each
 * message at most one email, nothing lost.
 */
export async function judge(
  place: Place,
  sends: Send[],
  messages: Map<string, MessageResource>,
  provider: ProviderLog,
  readers: readonly Participant[] = [place.sender, place.desk, place.garage],
): Promise<Fault[]> {
  const faults: Fault[] = [];
  const owners = new Map<string, string>();
  for (const send of sends) {
    for (const fault of send.faults) faults.push({ invariant: 'I5', text: `${send.title}: ${fault}` });
    const ids = new Set(send.answers.map(({ id }) => id));
    const [id] = ids;
    if (id === undefined) {
      faults.push({ invariant: 'I2', text: `${send.title}: no answer at all` });
      continue;
    }
    if (ids.size > 1) faults.push({ invariant: 'I1', text: `${send.title}: one key, ${ids.size} messages` });
    const other = owners.get(id);
    if (other !== undefined) faults.push({ invariant: 'I5', text: `${send.title} and ${other} share a message` });
    owners.set(id, send.title);
    const message = messages.get(id);
    if (message === undefined) faults.push({ invariant: 'I2', text: `${send.title}: accepted and gone` });
    else faults.push(...judgeMessage(send, message, provider));
  }
  for (const reader of readers) {
    faults.push(...(await judgeCopies(place, reader, sends, messages)));
  }
  return faults;
}

function judgeMessage(send: Send, message: MessageResource, provider: ProviderLog): Fault[] {
  const faults: Fault[] = [];
  if (!isAtRest(message)) faults.push({ invariant: 'I2', text: `${send.title}: still ${message.status}` });
  if (message.status === 'uncertain')
    faults.push({ invariant: 'I2', text: `${send.title}: uncertain, and nobody has resolved it` });
  const calls = provider.callsFor(message.id);
  if (calls.length > 1)
    faults.push({ invariant: 'I1', text: `${send.title}: the provider took it ${calls.length} times` });
  const sent = (message.deliveries ?? []).some(
    ({ status }) => !['rejected', 'failed', 'suppressed', 'queued'].includes(status),
  );
  if (sent && calls.length === 0)
    faults.push({ invariant: 'I2', text: `${send.title}: ${message.status}, but the provider never took it` });
  if (!sent && calls.length > 0)
    faults.push({ invariant: 'I1', text: `${send.title}: ${message.status}, but the provider took it` });
  return faults;
}

/** Copies that arrived in a mailbox, counted by the Message-ID that only one send can have. */
async function judgeCopies(
  place: Place,
  reader: Participant,
  sends: Send[],
  messages: Map<string, MessageResource>,
): Promise<Fault[]> {
  const copies = new Map<string, number>();
  let cursor: string | undefined;
  do {
    const { body } = await place.client.call('messages.list', {
      params: { identity_id: reader.id },
      query: { direction: 'inbound', limit: 100, cursor },
    });
    for (const { rfc_message_id: id } of body.data) copies.set(id ?? '', (copies.get(id ?? '') ?? 0) + 1);
    cursor = body.next_cursor ?? undefined;
  } while (cursor !== undefined);
  const faults: Fault[] = [];
  for (const [id, count] of copies)
    if (count > 1) faults.push({ invariant: 'I1', text: `${count} copies of <${id}> at ${reader.address}` });
  for (const send of sends) {
    const message = messages.get(send.answers[0]?.id ?? '');
    const delivery = message?.deliveries?.find(({ address }) => withoutDetail(address) === reader.address);
    if (message === undefined || delivery?.status !== 'delivered') continue;
    const count = copies.get(message.rfc_message_id ?? '') ?? 0;
    if (count !== 1)
      faults.push({
        invariant: 'I2',
        text: `${send.title}: delivered to ${reader.address}, which has ${count} copies`,
      });
  }
  return faults;
}
