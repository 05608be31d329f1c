import { type Address, localPartOf, parseDomain } from '../address/address.ts';
import { asId, type IdentityId, type MessageId, ulidOf } from '../ids.ts';
import { normalizeMessageId } from '../threading/message-id.ts';

/**
 * How the Message-ID of a message that Cloudflare has sent becomes known. Cloudflare makes it up and does not say it: what
 * `send()` answers is an id of its own, which stands in no header.
 */

export const MESSAGE_ID_STRATEGIES = ['journal', 'derived', 'none'] as const;
/** `journal`: a hidden copy comes back to us. `derived`: the answer's id is taken where it has the form of one. */
export type MessageIdStrategy = (typeof MESSAGE_ID_STRATEGIES)[number];

const PREFIX = 'journal+';

/** The hidden recipient of a message's journal copy: it names the message and its mailbox, 61 characters before the @. */
export function journalAddress(message: MessageId, identity: IdentityId, platformDomain: string): Address {
  return `${PREFIX}${ulidOf(message)}.${ulidOf(identity)}@${platformDomain}`;
}

/** Whose copy it is that came to a journal address; undefined for one that names nothing. */
export function readJournal(address: Address): { message_id: MessageId; identity_id: IdentityId } | undefined {
  const local = localPartOf(address).toLowerCase();
  if (!local.startsWith(PREFIX)) return undefined;
  const [message = '', identity = '', ...rest] = local.slice(PREFIX.length).split('.');
  const message_id = asId('msg', message);
  const identity_id = asId('idn', identity);
  if (message_id === undefined || identity_id === undefined || rest.length > 0) return undefined;
  return { message_id, identity_id };
}

/**
 * The Message-ID that follows from the id in the answer, without brackets, or null. No rule is known that makes one from
 * a bare id, so only an answer that is a whole Message-ID gives one.
 */
export function derivedMessageId(providerId: string): string | null {
  return /^<[^<>@\s]+@[^<>@\s]+>$/.test(providerId) ? learnableId(providerId, null) : null;
}

/**
 * A Message-ID that Cloudflare may have made, normalised and without brackets, or null.
 *
 * @param domain the domain it makes them with (or one above it), where the operator knows it
 */
export function learnableId(header: string, domain: string | null): string | null {
  const id = normalizeMessageId(header);
  const at = id?.lastIndexOf('@') ?? -1;
  if (id === undefined || at < 1) return null;
  const host = parseDomain(id.slice(at + 1));
  if (host === undefined) return null;
  return domain === null || host === domain || host.endsWith(`.${domain}`) ? id : null;
}
