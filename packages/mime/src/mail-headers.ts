import { type Mailbox, parseAddress } from '@pmail/core/address/address.ts';
import { HOP_HEADER } from '@pmail/core/compose/headers.ts';
import { parseMessageIds } from '@pmail/core/threading/message-id.ts';
import { addressParser, decodeWords, type Header } from 'postal-mime';
import { headerText } from './encoded-word.ts';
import { parseMailDate } from './mail-date.ts';

/** Ids kept of one References header, the newest ones. */
const REFERENCES_COUNT_MAX = 200;

/** What the header fields of a message say; see `ParsedMail` for the meaning of each. */
export interface MailHeaders {
  from: Mailbox | null;
  multiple_from: boolean;
  reply_to: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  subject: string;
  date: number | null;
  message_id: string | null;
  in_reply_to: string[];
  references: string[];
  headers: { name: string; value: string }[];
  hop: number;
  auto_submitted: boolean;
}

/** Reads the unfolded, still encoded header fields of a message. */
export function readHeaders(fields: readonly Header[]): MailHeaders {
  const all = (key: string): string[] => fields.filter((field) => field.key === key).map((field) => field.value);
  const first = (key: string): string => all(key)[0] ?? '';
  const from = mailboxes(all('from'));
  return {
    from: from.list[0] ?? null,
    multiple_from: from.count > 1,
    reply_to: mailboxes(all('reply-to')).list,
    to: mailboxes(all('to')).list,
    cc: mailboxes(all('cc')).list,
    subject: decoded(first('subject')),
    date: parseMailDate(first('date')),
    message_id: messageIds(first('message-id'))[0] ?? null,
    in_reply_to: messageIds(all('in-reply-to').join(' ')),
    references: messageIds(all('references').join(' ')).slice(-REFERENCES_COUNT_MAX),
    headers: fields.map((field) => ({ name: headerText(field.originalKey), value: decoded(field.value) })),
    hop: Math.max(0, ...all(HOP_HEADER.toLowerCase()).map(hopCount)),
    auto_submitted: all('auto-submitted').some((value) => !/^\s*(?:no\b|$)/i.test(value)),
  };
}

/** Encoded-words decoded; an encoded line break does not get into a value. */
export function decoded(value: string): string {
  return headerText(decodeWords(value));
}

/**
 * The addresses of all fields of one name, groups flattened. The fields are split before anything is decoded, so an
 * encoded comma or bracket stays part of a name. What is no address is left out of the list; `count` counts it.
 */
function mailboxes(values: readonly string[]): { list: Mailbox[]; count: number } {
  const list: Mailbox[] = [];
  let count = 0;
  for (const value of values) {
    for (const { address, name } of addressParser(value, { flatten: true })) {
      if (address === undefined || address === '') continue;
      count++;
      const parsed = parseAddress(address);
      if (parsed.ok) list.push({ address: parsed.address, name: headerText(name).trim() });
    }
  }
  return { list, count };
}

function messageIds(value: string): string[] {
  return parseMessageIds(withoutComments(value));
}

/** A comment may hold something that looks like an id; parentheses inside an id are its own (RFC 5322 section 3.2.2). */
function withoutComments(value: string): string {
  let out = '';
  let depth = 0;
  let inId = false;
  for (let i = 0; i < value.length; i++) {
    const char = value[i];
    if (depth > 0) {
      if (char === '\\') i++;
      else if (char === '(') depth++;
      else if (char === ')') depth--;
      continue;
    }
    if (char === '<') inId = true;
    else if (char === '>') inId = false;
    if (char === '(' && !inId) {
      // One that never closes is no comment: dropping the rest would lose the ids behind it.
      if (value.indexOf(')', i) < 0) return out + value.slice(i);
      depth = 1;
    } else out += char;
  }
  return out;
}

function hopCount(value: string): number {
  return /^\d{1,9}$/.test(value.trim()) ? Number(value) : 0;
}
