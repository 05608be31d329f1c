import { ApiError } from '@pmail/client/client.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import type { ProviderLog } from '@pmail/testkit/provider-log.ts';
import { saysAgain } from '../load/persist.ts';
import type { Place } from '../load/place.ts';
import { readMessage } from '../load/sends.ts';
import type { Fault } from '../load/verdict.ts';
import type { Exercised } from './checks.ts';

export type Settled = Pick<Exercised, 'settled_sent' | 'settled_not_sent'>;

const ATTEMPTS = 20;
const WAIT_MS = 250;

const isUncertain = ({ deliveries }: MessageResource): boolean =>
  deliveries?.some(({ status }) => status === 'uncertain') === true;

/**
 * What a person does about uncertain sends: looks into the provider's log and says what is there. A report that comes
 * between the look and the word settles it first, and a word whose answer was lost may have done so; then the message is
 * read again, and no longer counts as settled by a person.
 *
 * @returns how many were settled which way, with what could not be
 */
export async function settleAll(
  place: Place,
  messages: Map<string, MessageResource>,
  provider: Pick<ProviderLog, 'callsFor'>,
  waitMs = WAIT_MS,
): Promise<Settled & { faults: Fault[] }> {
  const settled = { settled_sent: 0, settled_not_sent: 0, faults: [] as Fault[] };
  for (const { id } of [...messages.values()].filter(isUncertain)) {
    const outcome = await settle(place, id, provider, waitMs).catch((error: unknown) => String(error));
    messages.set(id, await readMessage(place, place.sender, id));
    if (outcome === 'sent' || outcome === 'not_sent') settled[`settled_${outcome}`]++;
    else if (outcome !== null) settled.faults.push({ invariant: 'O1', text: `${id} could not be settled: ${outcome}` });
  }
  return settled;
}

/** @returns what the person said, or null when it was settled without that */
async function settle(
  place: Place,
  id: string,
  provider: Pick<ProviderLog, 'callsFor'>,
  waitMs: number,
): Promise<'sent' | 'not_sent' | null> {
  for (let attempt = 1; ; attempt++) {
    if (!isUncertain(await readMessage(place, place.sender, id))) return null;
    const outcome = provider.callsFor(id).length > 0 ? 'sent' : 'not_sent';
    try {
      await place.client.call('messages.resolve', {
        params: { identity_id: place.sender.id, message_id: id },
        body: { outcome },
      });
      return outcome;
    } catch (error) {
      const overtaken = error instanceof ApiError && error.code === 'not_uncertain';
      if (attempt >= ATTEMPTS || !(overtaken || saysAgain(error))) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, waitMs);
      });
    }
  }
}
