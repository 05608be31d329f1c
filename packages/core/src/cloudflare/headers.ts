import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';

/**
 * Headers that go to Cloudflare beside the fields of its API: which of a composed message they are, and what it takes.
 */

export interface HeaderField {
  name: string;
  value: string;
}

/** What is wrong with a message, as Cloudflare calls it. */
export interface CloudflareFault {
  code: string;
  detail: string;
}

/** Fields of the API. */
const API_FIELDS = new Set(['from', 'to', 'cc', 'bcc', 'subject', 'reply-to']);

/** Made by Cloudflare, or by its reading of the parts. */
const ITS_OWN = new Set(['date', 'message-id', 'mime-version', 'content-type', 'content-transfer-encoding']);

/** Those it takes of all that do not begin with X-, and the values where only some are taken. */
const ALLOWED = new Map<string, RegExp | null>([
  ['in-reply-to', null],
  ['references', null],
  ['list-unsubscribe', /^(?:<(?:https:\/\/|mailto:)[^<>\s]+>)(?:,\s*<(?:https:\/\/|mailto:)[^<>\s]+>)*$/],
  ['list-unsubscribe-post', /^List-Unsubscribe=One-Click$/],
  ['list-id', null],
  ['list-archive', null],
  ['list-help', null],
  ['list-owner', null],
  ['list-post', null],
  ['list-subscribe', null],
  ['precedence', /^(?:bulk|list|junk)$/],
  ['auto-submitted', /^auto-(?:generated|replied|notified)$/],
  ['content-language', null],
  ['keywords', null],
  ['comments', null],
  ['importance', /^(?:high|normal|low)$/],
  ['priority', /^(?:normal|non-urgent|urgent)$/],
  ['sensitivity', /^(?:personal|private|company-confidential)$/],
  ['organization', null],
  ['require-recipient-valid-since', null],
  ['expires', null],
  ['reply-by', null],
  ['archived-at', null],
]);

/** The fields of a composed message that go into `headers`: all that no field of the API stands for. */
export function customFields<T extends { name: string }>(fields: readonly T[]): T[] {
  return fields.filter(({ name }) => !API_FIELDS.has(name.toLowerCase()) && !ITS_OWN.has(name.toLowerCase()));
}

/**
 * Values as they are written in the message, encoded where they are not ASCII, because not every receiver takes them
 * otherwise; but a value that encoding makes longer than may be goes as it is read.
 */
export function writtenOrRead(written: readonly HeaderField[], read: readonly HeaderField[]): HeaderField[] {
  const fits = headersFault(written) === null;
  return (fits || written.length !== read.length ? written : read).map(({ name, value }) => ({ name, value }));
}

/** The first thing that Cloudflare would refuse, or null. */
export function headersFault(headers: readonly HeaderField[]): CloudflareFault | null {
  const seen = new Set<string>();
  let named = 0;
  let total = 0;
  for (const { name, value } of headers) {
    const key = name.toLowerCase();
    const fault = nameFault(name) ?? valueFault(name, value);
    if (fault !== null) return fault;
    if (seen.has(key)) return { code: 'E_VALIDATION_ERROR', detail: `header ${name} stands twice` };
    seen.add(key);
    if (!key.startsWith('x-')) named++;
    total += utf8Length(name) + utf8Length(value) + 4;
  }
  if (seen.has('list-unsubscribe-post') && !oneClick(headers)) {
    return { code: 'E_HEADER_VALUE_INVALID', detail: 'List-Unsubscribe-Post needs an HTTPS List-Unsubscribe' };
  }
  if (named > LIMITS.headers_non_x_count_max) {
    return { code: 'E_HEADERS_TOO_MANY', detail: `more than ${LIMITS.headers_non_x_count_max} headers without X-` };
  }
  if (total > LIMITS.headers_total_bytes_max) {
    return { code: 'E_HEADERS_TOO_LARGE', detail: `headers over ${LIMITS.headers_total_bytes_max} bytes together` };
  }
  return null;
}

function nameFault(name: string): CloudflareFault | null {
  const key = name.toLowerCase();
  if (API_FIELDS.has(key)) return { code: 'E_HEADER_USE_API_FIELD', detail: `header ${key} has a field of its own` };
  const wellFormed = key.startsWith('x-') ? /^x-[a-z0-9_-]+$/.test(key) : /^[a-z0-9-]+$/.test(key);
  if (!wellFormed || name.length > LIMITS.header_name_bytes_max) {
    return { code: 'E_HEADER_NAME_INVALID', detail: 'a header has a name that cannot be' };
  }
  if (key.startsWith('x-') || ALLOWED.has(key)) return null;
  return { code: 'E_HEADER_NOT_ALLOWED', detail: `header ${key} cannot be set` };
}

function valueFault(name: string, value: string): CloudflareFault | null {
  const pattern = ALLOWED.get(name.toLowerCase()) ?? null;
  if (value.trim() === '' || /[\r\n\0]/.test(value) || (pattern !== null && !pattern.test(value))) {
    return { code: 'E_HEADER_VALUE_INVALID', detail: `header ${name} has a value that is not taken` };
  }
  if (utf8Length(value) > LIMITS.header_value_bytes_max) {
    return { code: 'E_HEADER_VALUE_TOO_LONG', detail: `header ${name} is over ${LIMITS.header_value_bytes_max} bytes` };
  }
  return null;
}

function oneClick(headers: readonly HeaderField[]): boolean {
  return headers.some(({ name, value }) => /^list-unsubscribe$/i.test(name) && value.includes('<https://'));
}
