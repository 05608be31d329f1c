import type { Address } from '@pmail/core/address/address.ts';
import { readJournal } from '@pmail/core/cloudflare/message-id.ts';
import { routeIdentity } from '../directory/routing.ts';
import type { ConsumerWorld } from './world.ts';

/** The header of mail that came to a journal address, and the address. */
export interface JournalMail {
  recipient: Address;
  message_id: string;
  /** The one address of From; null when there is none or more than one. */
  from: Address | null;
  /** Decoded. */
  subject: string;
}

export type JournalWorld = Pick<ConsumerWorld, 'db' | 'count' | 'log' | 'mailbox' | 'message_ids'>;

/**
 * Mail to the journal: the mailbox that sent the message learns its Message-ID. The caller stores nothing and answers as
 * if all were well, whatever comes of it; all that a lost copy costs is that answers are found by their token alone.
 */
export async function receiveJournal(world: JournalWorld, mail: JournalMail): Promise<void> {
  const named = readJournal(mail.recipient);
  if (named === undefined || mail.from === null) return world.count('journal_ignored_total');
  try {
    const route = await routeIdentity(world.db, named.identity_id);
    if (route === undefined || route.mailbox_do_id === '') return world.count('journal_ignored_total');
    const learned = await world.mailbox(route).learnMessageId({
      message_id: named.message_id,
      header_id: mail.message_id,
      from: mail.from,
      subject: mail.subject,
      id_domain: world.message_ids.domain,
    });
    world.count(learned ? 'journal_learned_total' : 'journal_ignored_total');
  } catch (error) {
    world.log('warn', 'journal_lost', {
      message_id: named.message_id,
      error: error instanceof Error ? error.name : 'unknown',
    });
  }
}
