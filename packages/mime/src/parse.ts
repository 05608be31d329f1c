import type { Mailbox } from '@pmail/core/address/address.ts';
import { boundFilename, cleanFilename } from '@pmail/core/compose/filename.ts';
import { utf8 } from '@pmail/core/hash.ts';
import type { Attachment, Header } from 'postal-mime';
import { type ParsedTree, parseBounded } from './bounded-parser.ts';
import { decoded, type MailHeaders, readHeaders } from './mail-headers.ts';

/** Nesting that ordinary mail stays far below; deeper mail is read too, but marked. */
const NESTING_DEPTH_NORMAL = 32;
const NESTING_DEPTH_MAX = 256;
const ATTACHMENTS_COUNT_MAX = 500;
/** Header block that is read when the message as a whole cannot be. */
const HEADER_BYTES_MAX = 256 * 1024;

/** A file, an inline picture, a nested message: every leaf of the MIME tree that is not body text. */
export interface ParsedAttachment {
  /** Safe for a header and a disk, at most 255 bytes of UTF-8, never empty. */
  filename: string;
  /** As declared: lower case, without parameters. */
  content_type: string;
  disposition: 'attachment' | 'inline';
  /** Content-ID without angle brackets. */
  content_id: string | null;
  /** Decoded bytes; of a nested message and of text sent as it is, with `\n` line ends. */
  content: Uint8Array<ArrayBuffer>;
}

/** A received message as its author wrote it. Nothing in it is verified. */
export interface ParsedMail extends MailHeaders {
  /** The first mailbox of From that is an address, normalised; `null` when there is none. */
  from: Mailbox | null;
  /** Whether the From fields hold more than one mailbox, which no honest mail has without Sender. */
  multiple_from: boolean;
  /** Groups are flattened, an empty group gives nothing, unusable addresses are left out. */
  reply_to: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  /** Decoded, one line; `""` when there is none. */
  subject: string;
  /** Unix ms of the Date header, unchecked against any clock; `null` when it is missing or no date. */
  date: number | null;
  /** Message-IDs without angle brackets, normalised by core's rules. */
  message_id: string | null;
  in_reply_to: string[];
  /** The last 200. */
  references: string[];
  /** The plain-text body with `\n` line ends; `null` when the message has no such part. */
  text: string | null;
  /** The HTML body as received, not sanitised, `\n` line ends. */
  html: string | null;
  /** In the order of the message, the first 500. */
  attachments: ParsedAttachment[];
  /** Every header field of the message in order: the name as spelt, the value unfolded and decoded. */
  headers: { name: string; value: string }[];
  /** Value of X-Pylota-Mail-Hop; 0 when it is absent or no count. */
  hop: number;
  /** Whether Auto-Submitted says anything but `no` (RFC 3834 section 5). */
  auto_submitted: boolean;
  /**
   * Whether something was lost or guessed: no usable From or more than one, undecodable text, a tree that is too deep,
   * has too many parts or no boundary, or a message of which only the header could be read.
   */
  parse_degraded: boolean;
}

/** The content of a message beside its header fields. */
interface Content {
  text: string | null;
  html: string | null;
  attachments: ParsedAttachment[];
  degraded: boolean;
}

/**
 * Reads a message (RFC 5322, RFC 2045). Any bytes give a result and it never rejects: what cannot be read is left out
 * and `parse_degraded` is set.
 */
export async function parseMail(raw: Uint8Array): Promise<ParsedMail> {
  const { email, whole, degraded } = await parseTree(raw);
  const headers = attempt(() => readHeaders(email.headers)) ?? readHeaders([]);
  const content = whole ? await attempt(() => readContent(email, raw)) : undefined;
  const { text = null, html = null, attachments = [] } = content ?? {};
  const lost = [headers.subject, text, html].some((value) => value?.includes('\ufffd')) && !holdsReplacementSign(raw);
  return {
    ...headers,
    text,
    html,
    attachments,
    parse_degraded:
      degraded || content === undefined || content.degraded || headers.from === null || headers.multiple_from || lost,
  };
}

async function parseTree(raw: Uint8Array): Promise<{ email: ParsedTree; whole: boolean; degraded: boolean }> {
  for (const depth of [NESTING_DEPTH_NORMAL, NESTING_DEPTH_MAX]) {
    try {
      const { email, cut } = await parseWith(raw, depth);
      return { email, whole: true, degraded: cut || depth !== NESTING_DEPTH_NORMAL };
    } catch {
      // Too deep, or header fields that are too large.
    }
  }
  try {
    const { email } = await parseWith(headerBlock(raw).subarray(0, HEADER_BYTES_MAX), NESTING_DEPTH_NORMAL);
    return { email, whole: false, degraded: true };
  } catch {
    return { email: { headers: [], attachments: [] }, whole: false, degraded: true };
  }
}

function parseWith(raw: Uint8Array, maxNestingDepth: number): ReturnType<typeof parseBounded> {
  // A nested message stays an attachment: its text is not the sender's.
  return parseBounded(raw, { forceRfc822Attachments: true, maxNestingDepth, attachmentEncoding: 'arraybuffer' });
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

async function readContent(email: ParsedTree, raw: Uint8Array): Promise<Content> {
  const text = bodyText(email.text);
  const html = bodyText(email.html);
  const parts = email.attachments.slice(0, ATTACHMENTS_COUNT_MAX);
  const attachments = await Promise.all(parts.map(readAttachment));
  if (text === null && html === null && attachments.length === 0 && isMultipart(email.headers)) {
    const body = raw.subarray(headerBlock(raw).length);
    // Without a boundary nothing was found inside; the sender still wrote something.
    const plain = bodyText(decodeBytes(body).trim());
    if (plain !== null) return { text: plain, html, attachments, degraded: true };
  }
  return { text, html, attachments, degraded: parts.length < email.attachments.length };
}

function bodyText(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text.replace(/\r\n?/g, '\n');
}

function isMultipart(headers: readonly Header[]): boolean {
  return /^\s*multipart\//i.test(headers.find(({ key }) => key === 'content-type')?.value ?? '');
}

async function readAttachment(part: Attachment): Promise<ParsedAttachment> {
  const content = bytesOf(part.content);
  const content_type = part.mimeType;
  const name = part.filename ?? (content_type === 'message/rfc822' ? await nestedName(content) : '');
  const content_id = decoded(part.contentId ?? '').replace(/^<|>$/g, '');
  const inline = part.disposition === 'inline' || (part.disposition === null && part.related === true);
  return {
    filename: boundFilename(cleanFilename(name.toWellFormed(), content_type)),
    content_type,
    disposition: inline ? 'inline' : 'attachment',
    content_id: content_id === '' ? null : content_id,
    content,
  };
}

function bytesOf(content: Attachment['content']): Uint8Array<ArrayBuffer> {
  if (typeof content === 'string') return utf8(content);
  return content instanceof ArrayBuffer ? new Uint8Array(content) : new Uint8Array(content);
}

/** A nested message is named after its subject. Only that field is parsed: there may be hundreds of such messages. */
async function nestedName(content: Uint8Array): Promise<string> {
  const fallback = 'forwarded.eml';
  const header = latin1(headerBlock(content.subarray(0, HEADER_BYTES_MAX)));
  const field = /(?:^|\n)(subject[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*)/i.exec(header)?.[1];
  if (field === undefined) return fallback;
  try {
    const { email } = await parseWith(Buffer.from(field, 'latin1'), NESTING_DEPTH_NORMAL);
    // A slash would cut the subject off as a path.
    const subject = readHeaders(email.headers).subject.replace(/[/\\]+/g, '-');
    return subject === '' ? fallback : `${subject}.eml`;
  } catch {
    return fallback;
  }
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** The bytes up to and with the blank line that ends the header block; everything when there is none. */
function headerBlock(raw: Uint8Array): Uint8Array {
  let lineHasText = false;
  for (let i = 0; i < raw.length; i++) {
    if (raw[i] === 0x0a) {
      if (!lineHasText) return raw.subarray(0, i + 1);
      lineHasText = false;
    } else if (raw[i] !== 0x0d) lineHasText = true;
  }
  return raw;
}

function decodeBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** Whether the sender wrote U+FFFD, plain or quoted-printable; otherwise its presence means lost text. */
function holdsReplacementSign(raw: Uint8Array): boolean {
  return holds(raw, [0xef, 0xbf, 0xbd]) || holds(raw, Buffer.from('=ef=bf=bd'));
}

/** Whether the bytes stand somewhere, ASCII letters in either case. */
function holds(raw: Uint8Array, lower: ArrayLike<number>): boolean {
  const first = lower[0];
  for (let at = 0; at < raw.length; at++) {
    if (raw[at] === first && holdsAt(raw, at, lower)) return true;
  }
  return false;
}

function holdsAt(raw: Uint8Array, at: number, lower: ArrayLike<number>): boolean {
  for (let i = 0; i < lower.length; i++) {
    const byte = raw[at + i] ?? 0;
    if ((byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte) !== lower[i]) return false;
  }
  return true;
}
