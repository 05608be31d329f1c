import { ApiError } from '@pmail/client/client.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { SendBody, SendOperation } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { isRefused } from './answers.ts';
import { codeOf, type Participant, type Place } from './place.ts';

/** One key and what came of it. */
export interface Send {
  title: string;
  key: string;
  body: SendBody;
  from: Participant;
  operation: SendOperation;
  /** The message that is answered or forwarded, in the mailbox of `from`. */
  target: MessageId | null;
  /** The message of every answer to this key, which must all be one. */
  answers: MessageResource[];
  /** How many answers claimed to have made the message; at most one may. */
  fresh: number;
  /** Requests that ended without an answer, and may have done everything all the same. */
  unanswered: number;
  /** Requests that nobody took: of a client without retries they have done nothing for sure. */
  unsent: number;
  faults: string[];
}

type Answer = MessageResource & { deduplicated: boolean };

/** What is not a plain send of the usual sender says so in `other`. */
export function newSend(
  place: Place,
  title: string,
  key: string,
  body: SendBody,
  other: Partial<Pick<Send, 'from' | 'operation' | 'target'>> = {},
): Send {
  const usual = { from: place.sender, operation: 'send' as const, target: null };
  return { title, key, body, ...usual, ...other, answers: [], fresh: 0, unanswered: 0, unsent: 0, faults: [] };
}

function callSend(place: Place, send: Send, body: SendBody): Promise<{ body: unknown; headers: Headers }> {
  return place.client.call(`messages.${send.operation}`, {
    params: { identity_id: send.from.id, message_id: send.target ?? '' },
    body: body as never,
    idempotencyKey: send.key,
  });
}

/** One request. An answer must repeat the first one to the letter, and say that it does. */
export async function post(place: Place, send: Send): Promise<Answer | null> {
  try {
    const { body, headers } = await callSend(place, send, send.body);
    const { deduplicated, ...message } = body as Answer;
    const [first] = send.answers;
    if (first !== undefined && JSON.stringify(first) !== JSON.stringify(message)) {
      send.faults.push('a repeat was answered differently');
    }
    if (!deduplicated && ++send.fresh > 1) send.faults.push('a repeat was not marked as one');
    if (deduplicated !== (headers.get('idempotent-replayed') === 'true')) {
      send.faults.push('Idempotent-Replayed and deduplicated disagree');
    }
    send.answers.push(message);
    return { ...message, deduplicated };
  } catch (error) {
    // An answer that says "again" settles nothing either.
    if (isRefused(error)) send.unsent++;
    else if (!(error instanceof ApiError) || error.retryable) send.unanswered++;
    else send.faults.push(`refused: ${codeOf(error)}`);
    return null;
  }
}

/** The same key with another body: refused, and pointing at the message that has the key. */
export async function conflict(place: Place, send: Send): Promise<string> {
  try {
    await callSend(place, send, { ...send.body, text: `${send.body.text ?? ''} (changed)` });
    send.faults.push('another body was accepted under the same key');
    return 'accepted';
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'idempotency_conflict' || error.status !== 409) {
      send.faults.push(`another body was answered with ${codeOf(error)}`);
    } else if (error.details['original_message_id'] !== send.answers[0]?.id) {
      send.faults.push('the conflict named another message');
    }
    return error instanceof ApiError ? `${error.status} ${error.code}` : 'no answer';
  }
}

export async function readMessage(place: Place, owner: Participant, id: string): Promise<MessageResource> {
  const { body } = await place.client.call('messages.get', {
    params: { identity_id: owner.id, message_id: id },
  });
  return body;
}

const ENDED = ['delivered', 'bounced', 'complained', 'rejected', 'failed', 'suppressed', 'canceled', 'uncertain'];

/** Whether nothing more is going to happen to a message by itself. */
export function isAtRest(message: MessageResource): boolean {
  // The deliveries of a canceled message stay as they were.
  if (message.status === 'canceled') return true;
  return (message.deliveries ?? []).every(({ address, status }) => {
    if (ENDED.includes(status) || (status === 'deferred' && address.startsWith('deferred'))) return true;
    // Sent by a person's word: the provider never told us its id, so it can tell nothing more.
    return status === 'submitted' && message.provider_message_id === null && message.status !== 'queued';
  });
}

/** A load of half an hour ends with thousands of messages, and one connection for each would be a test of sockets. */
const READS_AT_ONCE = 40;

/** Waits until every send has come to rest, or gives up with those that have not. */
export async function waitForRest(place: Place, sends: Send[], limitMs: number): Promise<Map<string, MessageResource>> {
  const messages = new Map<string, MessageResource>();
  let waiting = sends;
  let ends: number | undefined;
  for (;;) {
    const queue = waiting.values();
    const reader = async (): Promise<void> => {
      for (const { from, answers } of queue) {
        const id = answers[0]?.id;
        if (id !== undefined) messages.set(id, await readMessage(place, from, id));
      }
    };
    await Promise.all(Array.from({ length: READS_AT_ONCE }, reader));
    waiting = waiting.filter(({ answers }) => {
      const message = messages.get(answers[0]?.id ?? '');
      return message !== undefined && !isAtRest(message);
    });
    // The first look at all of them takes its time, which is no waiting.
    ends ??= Date.now() + limitMs;
    if (waiting.length === 0 || Date.now() > ends) return messages;
    await new Promise((resolve) => {
      setTimeout(resolve, 250);
    });
  }
}
