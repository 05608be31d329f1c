import { LIMITS } from '../limits.ts';

/** A whole reply of a server (RFC 5321 section 4.2), its enhanced code taken out (RFC 2034, RFC 3463). */
export interface SmtpReply {
  /** Three digits. */
  code: string;
  /** The first that any line carries, or null. */
  enhanced: string | null;
  /** What stands behind the code of each line, as it came. */
  lines: string[];
  /** The lines on one, without enhanced codes and control characters. */
  text: string;
}

/** What a server has sent that is no reply. Nothing after it can be trusted to be one. */
export type ReplyFault = 'malformed' | 'line_too_long' | 'too_many_lines';

/** A reply of which only a part has come. Never more than the bounds of one reply. */
export interface ReplyReader {
  /** The line that has no end yet, one character for each byte, so that a character cut in two stays whole. */
  readonly partial: string;
  readonly code: string | null;
  readonly lines: readonly string[];
}

export const EMPTY_READER: ReplyReader = { partial: '', code: null, lines: [] };

export type ReadStep =
  /** More bytes are needed. */
  | { kind: 'more'; reader: ReplyReader }
  /** A whole reply, and where in the bytes it ended. */
  | { kind: 'reply'; reply: SmtpReply; used: number }
  | { kind: 'fault'; fault: ReplyFault };

const CR = 0x0d;
const LF = 0x0a;

/**
 * Reads on with the bytes from `at` to the end of the first reply. Bytes may come in pieces of any size. Lines end with
 * CRLF; a bare LF is taken too, because old servers send it. A line may be nothing but a code (RFC 5321 section 4.2,
 * `Reply-line`), and its last line may lack the blank as well.
 */
export function readReply(reader: ReplyReader, bytes: Uint8Array, at = 0): ReadStep {
  let { partial, code } = reader;
  const lines = [...reader.lines];
  for (let from = at; from < bytes.length; ) {
    const end = bytes.indexOf(LF, from);
    const upTo = end < 0 ? bytes.length : end;
    // A CR that may still belong to the line's end does not count.
    if (partial.length + upTo - from > LIMITS.smtp_reply_line_bytes_max + 1) return fault('line_too_long');
    partial += String.fromCharCode(...bytes.subarray(from, upTo));
    if (end < 0) break;
    const line = parseLine(withoutLineEnd(partial));
    if (line === 'line_too_long') return fault(line);
    if (line === undefined || (code !== null && code !== line.code)) return fault('malformed');
    ({ code } = line);
    lines.push(decode(line.text));
    if (line.last) return { kind: 'reply', reply: replyOf(code, lines), used: end + 1 };
    if (lines.length >= LIMITS.smtp_reply_lines_max) return fault('too_many_lines');
    partial = '';
    from = end + 1;
  }
  return { kind: 'more', reader: { partial, code, lines } };
}

function withoutLineEnd(line: string): string {
  let end = line.length;
  while (line.charCodeAt(end - 1) === CR) end--;
  return line.slice(0, end);
}

function fault(which: ReplyFault): ReadStep {
  return { kind: 'fault', fault: which };
}

function parseLine(line: string): { code: string; last: boolean; text: string } | 'line_too_long' | undefined {
  if (line.length > LIMITS.smtp_reply_line_bytes_max) return 'line_too_long';
  const match = /^([1-5]\d\d)(?:([ -])([\s\S]*))?$/.exec(line);
  if (match === null) return undefined;
  const [, code = '', separator, text = ''] = match;
  return { code, last: separator !== '-', text };
}

/** Bytes as text: UTF-8 (RFC 6531 section 3.7.4), or Latin-1 where they are not, so that nothing becomes unreadable. */
function decode(binary: string): string {
  if (!/[^\x00-\x7f]/.test(binary)) return binary;
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return binary;
  }
}

/** A code of the same class as the reply's; another is only text (RFC 2034 section 4). */
const ENHANCED = /^([245]\.\d{1,3}\.\d{1,3})(?=[ \t]|$)/;

function replyOf(code: string, lines: string[]): SmtpReply {
  let enhanced: string | null = null;
  const texts = lines.map((line) => {
    const found = ENHANCED.exec(line)?.[1];
    if (found === undefined || found[0] !== code[0]) return line;
    enhanced ??= found;
    return line.slice(found.length);
  });
  const text = texts
    .map((line) => line.replace(/[\x00-\x20\x7f-\x9f]+/g, ' ').trim())
    .filter((line) => line !== '')
    .join(' ');
  return { code, enhanced, lines, text };
}
