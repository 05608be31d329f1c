import { domainOf, localPartOf } from '@pmail/core/address/address.ts';
import { readJournal } from '@pmail/core/cloudflare/message-id.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { receiveJournal } from '@pmail/engine/consumers/journal.ts';
import { readMail } from '@pmail/mime/read-mail.ts';
import { consumerWorld } from '../consumers/world.ts';
import { config, type Env } from '../env.ts';
import { within } from '../http/deadline.ts';
import { newId } from '../ports/random.ts';

/** What Email Routing hands over, as far as it is used. */
export type RoutedMail = Pick<ForwardableEmailMessage, 'to' | 'raw'>;

/** One for all that is done with a mail. Past it the mail waits at its sender, and is never refused. */
const DEADLINE_MS = 40_000;

/**
 * Mail from Email Routing. Neither a sender whose bytes stop coming nor a mailbox that does not answer holds it for longer
 * than its deadline, and what was given up begins nothing more.
 */
export async function receiveEmail(mail: RoutedMail, env: Env): Promise<void> {
  const over = new AbortController();
  try {
    await within(DEADLINE_MS, 'email', takeIn(mail, env, over.signal));
  } finally {
    over.abort();
  }
}

/**
 * Copies for the journal are read and dropped, whatever they hold; all other mail has to wait at
 * its sender, as a throw makes it do, until there is a mailbox that takes it in.
 */
async function takeIn(mail: RoutedMail, env: Env, over: AbortSignal): Promise<void> {
  const recipient = mail.to.toLowerCase();
  const { platform_domain } = config(env);
  const forJournal = localPartOf(recipient).startsWith('journal+') && domainOf(recipient) === platform_domain;
  if (!forJournal) throw new Error('inbound mail is not taken in yet');
  const world = consumerWorld(env, newId('req', Date.now()), null);
  // Anybody can write to a made-up address here; reading what they wrote would be work for nothing.
  if (readJournal(recipient) === undefined) return world.count('journal_ignored_total');
  const header = await readHeader(mail.raw, over);
  const { rfc_message_id, from, subject } = await readMail(header);
  over.throwIfAborted();
  await receiveJournal(world, { recipient, message_id: rfc_message_id ?? '', from: from?.address ?? null, subject });
}

/** Everything before the first empty line, as far as it is kept; what follows it is never fetched. */
async function readHeader(raw: ReadableStream<Uint8Array>, over: AbortSignal): Promise<Uint8Array> {
  const reader = raw.getReader();
  over.addEventListener('abort', () => void reader.cancel().catch(() => undefined));
  const kept = new Uint8Array(LIMITS.journal_header_bytes_max);
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    // A stream that is given up ends like one that is complete, in the middle of its header.
    over.throwIfAborted();
    if (done) return kept.subarray(0, length);
    // The line end of before may be the first half of what ends the header.
    const from = Math.max(1, length);
    const room = value.subarray(0, kept.length - length);
    kept.set(room, length);
    length += room.length;
    const end = emptyLine(kept.subarray(0, length), from);
    if (end === null && length < kept.length) continue;
    await reader.cancel();
    return kept.subarray(0, end ?? length);
  }
}

/** Where the first empty line ends whose last byte stands at `from` or behind. */
function emptyLine(bytes: Uint8Array, from: number): number | null {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] !== 0x0a) continue;
    if (bytes[at - 1] === 0x0a || (bytes[at - 1] === 0x0d && bytes[at - 2] === 0x0a)) return at + 1;
  }
  return null;
}
