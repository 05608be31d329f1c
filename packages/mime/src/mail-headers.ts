import { type Mailbox, parseAddress } from '@pmail/core/address/address.ts';
import { HOP_HEADER } from '@pmail/core/compose/headers.ts';
import { parseMessageIds } from '@pmail/core/threading/message-id.ts';
import { addressParser, type Header } from 'postal-mime';
import { decodeWords, isEncoded } from './decode-words.ts';
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
    for (const { address, name } of splitMailboxes(value)) {
      if (address === '') continue;
      count++;
      const parsed = parseAddress(address);
      if (parsed.ok) list.push({ address: parsed.address, name: headerText(name).trim() });
    }
  }
  return { list, count };
}

/** In place of each question mark while a field is split: half a character, which no header that was decoded holds. */
const NO_MARK = '\ud800';

/** The splitter must see no encoded-word, or it decodes names in its own way, which takes it minutes for a long one. */
function splitMailboxes(value: string): { address: string; name: string }[] {
  return splitUndecoded(value).flatMap(({ address, name: undecoded }) => {
    const name = decodeWords(undecoded);
    if (address !== '' || name === undecoded) return [{ address, name }];
    // What stands beside encoded words and is no address may be one to others. Some programs encode a mailbox as a whole.
    if (!isEncoded(undecoded)) return [{ address: undecoded, name }];
    return /<[^<>@]+@[^<>]+>/.test(name) ? splitUndecoded(name) : [];
  });
}

function splitUndecoded(value: string): { address: string; name: string }[] {
  const undecoded = withoutGroups(value).replaceAll('?', NO_MARK);
  return addressParser(undecoded, { flatten: true }).map(({ address = '', name }) => ({
    address: address.replaceAll(NO_MARK, '?'),
    name: name.replaceAll(NO_MARK, '?'),
  }));
}

const CLOSING: Partial<Record<string, string>> = { '"': '"', '(': ')', '<': '>' };

/**
 * The mailboxes of a field without the groups around them (RFC 5322 section 3.4). The splitter reads what stands in a
 * group once more for each group around it, and takes fifty of them.
 */
function withoutGroups(value: string): string {
  if (!value.includes(':')) return value;
  const members: string[] = [];
  let start = 0;
  let closing: string | undefined;
  for (let i = 0; i < value.length; i++) {
    const char = value.charAt(i);
    if (closing !== undefined) {
      if (char === closing) closing = undefined;
      else if (char === '\\' && closing === '"') i++;
      continue;
    }
    closing = CLOSING[char];
    if (char === ',' || char === ';') members.push(value.slice(start, i));
    if (char === ',' || char === ';' || char === ':') start = i + 1;
  }
  members.push(value.slice(start));
  return members.join(',');
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
