import { type Address, parseAddress } from '../address/address.ts';
import { codePoints, hasControlCharacter } from '../address/names.ts';
import { LIMITS } from '../limits.ts';
import type { OutgoingAttachment, OutgoingMessage } from '../transport/types.ts';
import { type CloudflareFault, headersFault } from './headers.ts';

/** A message in the fields that the binding takes. */
export interface CloudflareMail {
  from: CloudflareMailbox;
  to?: CloudflareRecipient[];
  cc?: CloudflareRecipient[];
  bcc?: CloudflareRecipient[];
  replyTo?: CloudflareRecipient;
  subject: string;
  text?: string;
  html?: string;
  headers?: Record<string, string>;
  attachments?: CloudflareAttachment[];
}

export interface CloudflareMailbox {
  email: Address;
  name: string;
}

/** A bare address where there is no name to show. */
export type CloudflareRecipient = Address | CloudflareMailbox;

/** The content as bytes: a string would be taken for base64. */
export type CloudflareAttachment =
  | { disposition: 'attachment'; filename: string; type: string; content: Uint8Array }
  | { disposition: 'inline'; contentId: string; filename: string; type: string; content: Uint8Array };

/** The call to make for a message. A field with nothing in it is left out; nobody is shown who gets it blind. */
export function cloudflareMail(message: OutgoingMessage): CloudflareMail {
  const { from, reply_to, subject, text, html, headers, attachments, names = {} } = message;
  const shown = (address: Address): CloudflareRecipient => {
    const name = names[address] ?? '';
    return name === '' ? address : { email: address, name };
  };
  const hidden = message.journal_bcc === null ? message.bcc : [...message.bcc, message.journal_bcc];
  const mail: CloudflareMail = { from: { email: from.address, name: from.name }, subject };
  if (message.to.length > 0) mail.to = message.to.map(shown);
  if (message.cc.length > 0) mail.cc = message.cc.map(shown);
  if (hidden.length > 0) mail.bcc = hidden;
  if (reply_to !== null) mail.replyTo = from.name === '' ? reply_to : { email: reply_to, name: from.name };
  if (text !== null || html === null) mail.text = text ?? '';
  if (html !== null) mail.html = html;
  if (headers.length > 0) mail.headers = Object.fromEntries(headers.map(({ name, value }) => [name, value]));
  if (attachments.length > 0) mail.attachments = attachments.map(attachmentOf);
  return mail;
}

function attachmentOf(part: OutgoingAttachment): CloudflareAttachment {
  const { filename, content_type: type, content, content_id } = part;
  return part.disposition === 'inline' && content_id !== null
    ? { disposition: 'inline', contentId: content_id, filename, type, content }
    : { disposition: 'attachment', filename, type, content };
}

/**
 * The first thing that Cloudflare would refuse about a message, or null. Looked at before the call, so that a message
 * which cannot be right never becomes a question to the provider, and so that local runs, whose provider takes anything,
 * refuse the same.
 */
export function cloudflareFault(message: OutgoingMessage): CloudflareFault | null {
  return recipientsFault(message) ?? fieldsFault(message) ?? partsFault(message) ?? headersFault(message.headers);
}

function recipientsFault({ to, cc, bcc, journal_bcc }: OutgoingMessage): CloudflareFault | null {
  const recipients = [...to, ...cc, ...bcc];
  if (recipients.length === 0) return { code: 'E_FIELD_MISSING', detail: 'nobody to send to' };
  const all = journal_bcc === null ? recipients : [...recipients, journal_bcc];
  if (all.length > LIMITS.cloudflare_recipients_count_max) {
    return { code: 'E_TOO_MANY_RECIPIENTS', detail: `more than ${LIMITS.cloudflare_recipients_count_max} recipients` };
  }
  if (!all.every(isAddress)) return { code: 'E_VALIDATION_ERROR', detail: 'a recipient is not an address' };
  return null;
}

function fieldsFault({ from, reply_to, subject, names = {}, mime }: OutgoingMessage): CloudflareFault | null {
  if (!isAddress(from.address)) return { code: 'E_VALIDATION_ERROR', detail: 'From is not an address' };
  if (reply_to !== null && !isAddress(reply_to)) {
    return { code: 'E_VALIDATION_ERROR', detail: 'Reply-To is not an address' };
  }
  if ([from.name, subject, ...Object.values(names)].some(hasControlCharacter)) {
    return { code: 'E_VALIDATION_ERROR', detail: 'a name or the subject holds a control character' };
  }
  if (codePoints(subject) > LIMITS.subject_chars_max) {
    return { code: 'E_VALIDATION_ERROR', detail: `the subject is over ${LIMITS.subject_chars_max} characters` };
  }
  if (mime.length > LIMITS.cloudflare_message_bytes_max) {
    return { code: 'E_CONTENT_TOO_LARGE', detail: `over ${LIMITS.cloudflare_message_bytes_max} bytes` };
  }
  return null;
}

function partsFault({ attachments }: OutgoingMessage): CloudflareFault | null {
  if (attachments.length > LIMITS.attachments_count_max) {
    return { code: 'E_TOO_MANY_ATTACHMENTS', detail: `more than ${LIMITS.attachments_count_max} attachments` };
  }
  for (const { filename, content_type, content_id } of attachments) {
    const written = [filename, content_type, content_id ?? ''];
    if (filename === '' || content_id === '' || written.some(hasControlCharacter)) {
      return { code: 'E_VALIDATION_ERROR', detail: 'an attachment has a name that cannot be written' };
    }
    if (!/^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/i.test(content_type)) {
      return { code: 'E_VALIDATION_ERROR', detail: 'an attachment has a type that is none' };
    }
  }
  return null;
}

function isAddress(text: string): boolean {
  const parsed = parseAddress(text);
  return parsed.ok && parsed.address === text;
}
