import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';

/** Text cut to a number of UTF-8 bytes on a character boundary, and whether anything was cut. */
export function cutUtf8(text: string, maxBytes: number): { text: string; cut: boolean } {
  // A UTF-16 unit needs at most three bytes, so short text needs no counting.
  if (text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes) return { text, cut: false };
  const bytes = new TextEncoder().encode(text);
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  // A byte order mark at the start is part of the text; the decoder would drop it.
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  return { text: decoder.decode(bytes.subarray(0, end)), cut: true };
}

/** Text cut to a number of UTF-16 units, never inside a surrogate pair. */
export function cutUnits(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}

/** First characters of a text on one line, for lists. */
export function snippetOf(text: string): string {
  const start = cutUnits(text.trimStart(), LIMITS.snippet_chars_max * 8)
    .replace(/\s+/gu, ' ')
    .trim();
  return Array.from(start).slice(0, LIMITS.snippet_chars_max).join('').trim();
}
