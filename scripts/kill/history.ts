import { ApiError } from '@pmail/client/client.ts';
import type { Place } from '../load/place.ts';
import { post, type Send } from '../load/sends.ts';
import type { Fault } from '../load/verdict.ts';

/**
 * What a client knows of each key: it has an answer, was refused for good, does not know because an answer was lost, or
 * knows that nobody ever took a request of it.
 */
export type Known = 'ok' | 'fail' | 'indeterminate' | 'not_sent';

/** One key with everything that its client has done and heard. */
export interface Story {
  send: Send;
  /** What the client knew when the runtime died. */
  known: Known;
  /** Whether somebody tries to cancel it, and what came of that. */
  cancel: 'none' | 'asked' | 'canceled' | 'refused';
  /** Whether two requests of it went out at once. */
  twice: boolean;
  /**
   * How often another body under the key was refused as it should be, before the kill and after it; an attempt without
   * an answer is not one.
   */
  conflicts: { before: number; after: number };
  faults: Fault[];
}

export function story(send: Send): Story {
  return { send, known: 'not_sent', cancel: 'none', twice: false, conflicts: { before: 0, after: 0 }, faults: [] };
}

/**
 * Requests of one key while the runtime lives: once or twice at once, and sometimes a cancel behind it.
 *
 * @param place with a client that repeats nothing by itself
 * @param lives whether the runtime was not killed yet; what begins after that nobody takes, however it ends
 */
export async function live(place: Place, own: Story, chance: () => number, lives: () => boolean): Promise<void> {
  const { send } = own;
  const sent = lives();
  const twice = chance() < 0.2;
  const cancels = chance() < 0.12;
  const other = chance() < 0.1;
  await Promise.all(twice ? [post(place, send), post(place, send)] : [post(place, send)]);
  own.twice = twice && sent && send.unsent === 0;
  if (send.answers.length > 0) own.known = 'ok';
  else if (send.faults.length > 0) own.known = 'fail';
  else own.known = sent && send.unanswered > 0 ? 'indeterminate' : 'not_sent';
  if (cancels) await cancel(place, own);
  if (other && own.known === 'ok') await conflict(place, own, 'before');
}

async function cancel(place: Place, own: Story): Promise<void> {
  const [answer] = own.send.answers;
  if (answer === undefined) return;
  own.cancel = 'asked';
  try {
    await place.client.call('messages.cancel', {
      params: { identity_id: place.sender.id, message_id: answer.id },
    });
    own.cancel = 'canceled';
  } catch (error) {
    if (error instanceof ApiError && !error.retryable) own.cancel = 'refused';
  }
}

/**
 * The key with another body: refused for good, and pointing at the message that has the key. Answers whether it came to
 * that; no answer, or one that says "again", shows nothing either way.
 */
export async function conflict(place: Place, own: Story, when: 'before' | 'after'): Promise<boolean> {
  const { send } = own;
  const wrong = (text: string): void => void own.faults.push({ invariant: 'I5', text: `${send.title}: ${text}` });
  try {
    await place.client.call('messages.send', {
      params: { identity_id: send.from.id },
      body: { ...send.body, text: 'Another text.' } as never,
      idempotencyKey: send.key,
    });
    wrong('another body was accepted under its key');
  } catch (error) {
    if (!(error instanceof ApiError) || error.retryable) return false;
    const named = error.details['original_message_id'];
    if (error.code !== 'idempotency_conflict' || error.status !== 409) {
      wrong(`another body was answered with ${error.status} ${error.code}`);
    } else if (named !== send.answers[0]?.id) {
      wrong(`another body was refused with the id ${String(named)}, which is not that of its message`);
    } else own.conflicts[when]++;
  }
  return true;
}

/** The same while nothing is being killed: there has to be an answer. */
export async function mustConflict(place: Place, own: Story): Promise<void> {
  if (own.send.answers.length === 0 || (await conflict(place, own, 'after'))) return;
  own.faults.push({ invariant: 'I5', text: `${own.send.title}: another body under its key was never answered` });
}

/** Until there is an answer, as a client of the real world goes on. */
export async function insist(place: Place, own: Story): Promise<void> {
  for (let attempt = 0; attempt < 60; attempt++) {
    if ((await post(place, own.send)) !== null) return;
    if (own.send.faults.length > 0) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
  }
  own.faults.push({ invariant: 'I2', text: `${own.send.title}: never answered` });
}
