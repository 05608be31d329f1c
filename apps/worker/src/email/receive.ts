import { domainOf, localPartOf } from '@pmail/core/address/address.ts';
import { concatBytes } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { receiveJournal } from '@pmail/engine/consumers/journal.ts';
import { parseInbound } from '../consumers/parse.ts';
import { consumerWorld } from '../consumers/world.ts';
import { config, type Env } from '../env.ts';
import { newId } from '../ports/random.ts';

/** What Email Routing hands over, as far as it is used. */
export type RoutedMail = Pick<ForwardableEmailMessage, 'to' | 'raw'>;

/**
 * Mail from Email Routing. Copies for the journal are read and dropped, whatever they hold; all other mail has to wait at
 * its sender, as a throw makes it do, until there is a mailbox that takes it in.
 */
export async function receiveEmail(mail: RoutedMail, env: Env): Promise<void> {
  const recipient = mail.to.toLowerCase();
  const { platform_domain } = config(env);
  const forJournal = localPartOf(recipient).startsWith('journal+') && domainOf(recipient) === platform_domain;
  if (!forJournal) throw new Error('inbound mail is not taken in yet');
  const world = consumerWorld(env, newId('req', Date.now()), null);
  const header = await readHeader(mail.raw);
  const { rfc_message_id, from, subject } = await parseInbound(header);
  await receiveJournal(world, { recipient, message_id: rfc_message_id ?? '', from: from?.address ?? null, subject });
}

/** Everything before the first empty line, as far as it is kept; what follows it is never fetched. */
async function readHeader(raw: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const reader = raw.getReader();
  const parts: Uint8Array[] = [];
  let all: Uint8Array = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return all;
    parts.push(value);
    all = concatBytes(...parts);
    const end = emptyLine(all);
    if (end === null && all.length < LIMITS.journal_header_bytes_max) continue;
    await reader.cancel();
    return all.subarray(0, Math.min(end ?? all.length, LIMITS.journal_header_bytes_max));
  }
}

function emptyLine(bytes: Uint8Array): number | null {
  for (let at = 1; at < bytes.length; at++) {
    if (bytes[at] !== 0x0a) continue;
    if (bytes[at - 1] === 0x0a || (bytes[at - 1] === 0x0d && bytes[at - 2] === 0x0a)) return at + 1;
  }
  return null;
}
