import { withoutDetail } from '@pmail/core/address/address.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { Participant, Place } from '../load/place.ts';
import { newSend, post, readMessage, type Send, waitForRest } from '../load/sends.ts';
import { heading } from './report.ts';

/**
 * Three identities in one conversation: a message with a file to two of them, a reply, a reply to all and a forward.
 * Every step is sent twice with its key, and what arrives is held against what the step should have made.
 */

const ARRIVAL_LIMIT_MS = 30_000;

export async function converse(place: Place, run: string): Promise<{ sends: Send[]; faults: string[] }> {
  heading('a conversation: a message to two, a reply, a reply to all, a forward');
  const { sender, desk, garage } = place;
  const faults: string[] = [];
  const sends: Send[] = [];
  const say = async (send: Send): Promise<void> => {
    sends.push(send);
    await post(place, send);
    const again = await post(place, send);
    const to = (again?.deliveries ?? []).map(({ address }) => address).join(', ');
    console.log(`  ${send.title.padEnd(14)} ${again?.id ?? 'refused'}  to ${to}`);
    if (again?.deduplicated !== true) faults.push(`${send.title}: the repeat was not replayed`);
  };
  const expect = (truth: boolean, fault: string): void => {
    if (!truth) faults.push(fault);
  };
  const key = (step: string): string => `demo-${run}-talk-${step}`;

  const subject = `The car for Friday (${run})`;
  await say(
    newSend(place, 'begins', key('begins'), {
      to: [desk.address],
      cc: [garage.address],
      subject,
      text: 'Can it be ready by nine?',
      attachments: [
        { filename: 'plan.txt', content_type: 'text/plain', content_base64: 'OTowMCBrZXlzLCA5OjE1IG91dA==' },
      ],
    }),
  );
  const atDesk = await arrival(place, desk, subject, 1);
  const atGarage = await arrival(place, garage, subject, 1);

  await say(
    newSend(place, 'reply', key('reply'), { text: 'I shall ask.' }, { from: desk, operation: 'reply', target: atDesk }),
  );
  const reply = await arrival(place, sender, `Re: ${subject}`, 1);
  await say(
    newSend(
      place,
      'reply to all',
      key('reply-all'),
      { html: '<p>It will be.</p>' },
      { from: garage, operation: 'reply_all', target: atGarage },
    ),
  );
  await arrival(place, sender, `Re: ${subject}`, 2);
  await say(
    newSend(
      place,
      'forward',
      key('forward'),
      { to: [garage.address], text: 'For your files.' },
      { from: desk, operation: 'forward', target: atDesk },
    ),
  );
  const forwarded = await arrival(place, garage, `Fwd: ${subject}`, 1);

  const messages = await waitForRest(place, sends, ARRIVAL_LIMIT_MS);
  const [first, replySent, allSent, forwardSent] = sends.map(({ answers }) => messages.get(answers[0]?.id ?? ''));
  // A reply goes to the address with the thread's token behind the plus.
  const targets = (message: MessageResource | undefined): string =>
    (message?.deliveries ?? [])
      .map(({ address, field }) => `${field} ${withoutDetail(address)}`)
      .sort()
      .join();
  expect(targets(replySent) === `to ${sender.address}`, 'the reply went to others than the sender');
  expect(targets(allSent) === `to ${sender.address},to ${desk.address}`, 'the reply to all went to others');
  const received = await readMessage(place, sender, reply);
  expect(received.thread_id === first?.thread_id, 'the reply did not come back into its thread');
  expect(received.in_reply_to === first?.rfc_message_id, 'the reply does not name what it answers');
  const copy = await readMessage(place, garage, forwarded);
  expect(
    copy.attachments.some(({ filename }) => filename === 'plan.txt') && forwardSent?.status === 'delivered',
    'the forward did not bring the file',
  );
  console.log(`  all in the threads they belong to: ${faults.length === 0 ? 'yes' : 'NO'}`);
  return { sends, faults };
}

/** The newest of `count` messages with the subject in a mailbox, once that many have arrived. */
async function arrival(place: Place, reader: Participant, subject: string, count: number): Promise<MessageId> {
  const ends = Date.now() + ARRIVAL_LIMIT_MS;
  for (;;) {
    const { body } = await place.client.call('messages.list', {
      params: { identity_id: reader.id },
      query: { direction: 'inbound', limit: 50 },
    });
    const found = body.data.filter((message) => message.subject === subject);
    const [newest] = found;
    if (newest !== undefined && found.length >= count) return newest.id;
    if (Date.now() > ends) throw new Error(`nothing with the subject "${subject}" arrived at ${reader.address}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
  }
}
