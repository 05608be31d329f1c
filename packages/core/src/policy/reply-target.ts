import { getDomain } from 'tldts';
import { type Address, domainOf, type Mailbox } from '../address/address.ts';
import type { TargetFacts } from './types.ts';

/** The registrable domain (public suffix list), or the name itself when it has none. */
export function organisationalDomain(domain: string): string {
  return getDomain(domain, { allowPrivateDomains: true }) ?? domain;
}

/**
 * Whom a reply to an inbound message goes to. Its Reply-To is followed only where that cannot be used to lead our
 * answer to a stranger: the sender is known, both addresses belong to one organisation, or this mailbox has written
 * to the Reply-To address before.
 */
export function replyTarget(
  target: Pick<TargetFacts, 'from' | 'reply_to' | 'known_sender'>,
  hasWrittenTo: (address: Address) => boolean,
): Mailbox | null {
  const [replyTo] = target.reply_to;
  if (replyTo === undefined) return target.from;
  const sameOrganisation =
    target.from !== null &&
    organisationalDomain(domainOf(replyTo.address)) === organisationalDomain(domainOf(target.from.address));
  return target.known_sender || sameOrganisation || hasWrittenTo(replyTo.address) ? replyTo : target.from;
}
