import { type Mailbox, parseAddress } from '@pmail/core/address/address.ts';
import { headerText, phrase, unstructured } from './encoded-word.ts';

/** RFC 5322 section 2.1.1: no line may be longer. */
export const LINE_BYTES_MAX = 998;
/** RFC 5322 section 2.1.1: lines should not be longer. */
const LINE_BYTES_PREFERRED = 78;

/** What an id between angle brackets may hold to be written as it is; it can be neither encoded nor folded. */
const WRITABLE_ID = /^[\x21-\x3b\x3d\x3f-\x7e]+$/;
const ID_BYTES_MAX = 960;

/**
 * One header field, folded between tokens so that lines stay within 78 characters where that is possible
 * (RFC 5322 section 2.2.3). No line end at the end.
 *
 * @param breakFirst whether the first token may go below the name when it does not fit beside it
 */
export function foldedHeader(name: string, tokens: readonly string[], breakFirst = true): string {
  let out = `${name}:`;
  let length = out.length;
  let first = true;
  for (const token of tokens) {
    const wanted = length + 1 + token.length;
    const fits = wanted <= LINE_BYTES_PREFERRED;
    const stay = fits || (first && (!breakFirst || token.length >= LINE_BYTES_PREFERRED) && wanted <= LINE_BYTES_MAX);
    out += stay ? ` ${token}` : `\r\n ${token}`;
    length = stay ? wanted : 1 + token.length;
    first = false;
  }
  return tokens.length === 0 ? `${out} ` : out;
}

/** From, Reply-To, To or Cc (RFC 5322 section 3.4). Throws a `TypeError` for an address that core does not accept. */
export function addressHeader(name: string, mailboxes: readonly Mailbox[]): string {
  const tokens = mailboxes.flatMap((mailbox, index) => {
    const list = mailboxTokens(mailbox);
    if (index < mailboxes.length - 1) list.push(`${list.pop()},`);
    return list;
  });
  return foldedHeader(name, tokens);
}

/** An address in the form in which it is written. Throws a `TypeError` for one that core does not accept. */
export function writtenAddress(address: string): string {
  const parsed = parseAddress(address);
  // Addresses are checked long before; one that is not would rewrite the header's structure.
  if (!parsed.ok) throw new TypeError('an address in the message is not a valid mailbox');
  return parsed.address;
}

function mailboxTokens(mailbox: Mailbox): string[] {
  const address = writtenAddress(mailbox.address);
  const words = phrase(mailbox.name);
  if (words.length === 0 && !address.startsWith('"')) return [address];
  return [...words, `<${address}>`];
}

/**
 * Subject. Words that do not fit a line are encoded, since every mail program decodes a subject; an empty one is
 * written with an empty value.
 */
export function subjectHeader(subject: string): string {
  const room = LINE_BYTES_PREFERRED - 'Subject: '.length;
  return foldedHeader('Subject', unstructured(subject, room, LINE_BYTES_PREFERRED - 1));
}

/**
 * A header of the caller or of the service with free text. A long word stays as it is up to the length that a line may
 * have at all: programs read such values, and few of them decode encoded-words.
 */
export function textHeader(name: string, value: string): string {
  const room = LINE_BYTES_PREFERRED - name.length - 2;
  return foldedHeader(name, unstructured(value, room, LINE_BYTES_MAX - 1));
}

/** Whether a Message-ID without its angle brackets can be written into a header: printable ASCII, and not too long. */
export function isWritableId(id: string): boolean {
  return id.length <= ID_BYTES_MAX && WRITABLE_ID.test(id);
}

/** Message-ID, In-Reply-To or References: bracketed ids with a blank between, folded only there. */
export function idHeader(name: string, value: string): string {
  return foldedHeader(name, value.split(' '), false);
}

/**
 * List-Unsubscribe (RFC 2369): bracketed URLs, folded after the commas. A URL that is longer than a line may be is
 * broken with blanks inside its brackets, which readers remove (RFC 2369 section 2).
 */
export function urlListHeader(name: string, value: string): string {
  const tokens = headerText(value)
    .split(/, (?=<)/)
    .flatMap((url, index, all) => urlPieces(index < all.length - 1 ? `${url},` : url));
  return foldedHeader(name, tokens, false);
}

function urlPieces(url: string): string[] {
  // Callers' URLs are ASCII already; one that is not is percent-encoded rather than sent as 8-bit.
  const ascii = url.replace(/[^\x21-\x7e]+/g, (text) => encodeURIComponent(text.toWellFormed()));
  return ascii.match(/.{1,900}/g) ?? [];
}
