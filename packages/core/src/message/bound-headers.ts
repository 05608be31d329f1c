import type { Mailbox } from '../address/address.ts';
import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from './text.ts';

/** What the header of a received message says, as far as one row has room for it. */
export interface StoredHeaders {
  from: Mailbox | null;
  reply_to: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  subject: string;
  rfc_message_id: string | null;
  in_reply_to: string[];
  references: string[];
}

/**
 * Cuts what a stranger may make as long as a message may be, so that mail of any shape can be stored: names, the subject,
 * lists of people, and ids. Of people the first ones stay, of references the root
 * and the latest.
 *
 * @returns the same headers, and whether something was cut
 */
export function boundHeaders<H extends StoredHeaders>(headers: H): { headers: H; cut: boolean } {
  const bounded: H = {
    ...headers,
    from: headers.from === null ? null : person(headers.from),
    reply_to: people(headers.reply_to),
    to: people(headers.to),
    cc: people(headers.cc),
    subject: cutUnits(headers.subject, LIMITS.row_subject_chars_max),
    rfc_message_id: headers.rfc_message_id !== null && isId(headers.rfc_message_id) ? headers.rfc_message_id : null,
    in_reply_to: headers.in_reply_to.filter(isId).slice(0, LIMITS.row_references_count_max),
    references: latest(headers.references.filter(isId)),
  };
  const sizes = ({ reply_to, to, cc, references, in_reply_to }: StoredHeaders): number[] =>
    [reply_to, to, cc, references, in_reply_to].map((list) => list.length);
  const texts = ({ from, reply_to, to, cc, subject, rfc_message_id }: StoredHeaders): unknown[] => [
    ...[from, ...reply_to, ...to, ...cc].map((entry) => entry?.name),
    subject,
    rfc_message_id,
  ];
  const same = (one: unknown[], other: unknown[]): boolean => one.every((value, index) => value === other[index]);
  const cut = !same(sizes(headers), sizes(bounded)) || !same(texts(bounded), texts(headers));
  return { headers: bounded, cut };
}

function person({ address, name }: Mailbox): Mailbox {
  return { address, name: cutUnits(name, LIMITS.name_chars_max) };
}

function people(list: readonly Mailbox[]): Mailbox[] {
  let room: number = LIMITS.row_people_bytes_max;
  const kept: Mailbox[] = [];
  for (const entry of list.map(person)) {
    room -= utf8Length(JSON.stringify(entry)) + 1;
    if (room < 0) break;
    kept.push(entry);
  }
  return kept;
}

function latest(ids: string[]): string[] {
  const max = LIMITS.row_references_count_max;
  return ids.length <= max ? ids : [...ids.slice(0, 1), ...ids.slice(1 - max)];
}

/** An id is one line of a header (RFC 5322 section 2.1.1). */
function isId(id: string): boolean {
  return id.length <= LIMITS.row_id_chars_max;
}
