import { headerText, looksEncoded } from './encoded-word.ts';
import { foldedHeader } from './header-lines.ts';

/** Characters of one parameter value before it is split; leaves room for the name on a line of 78. */
const SECTION_CHARS_MAX = 55;
/** Bytes that stand for themselves in an extended value: RFC 5987 attr-char, a subset of what RFC 2231 allows. */
const ATTRIBUTE_CHAR = /^[A-Za-z0-9!#$&+.^_`|~-]$/;
const TYPE = /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+$/;

/** The type as given, or `application/octet-stream` for anything but `type/subtype`. */
export function safeContentType(contentType: string): string {
  return TYPE.test(contentType) && contentType.length <= 255 ? contentType : 'application/octet-stream';
}

/** A structured MIME header: the value, then parameters that are already written as `name=value`. */
export function parameterHeader(name: string, value: string, parameters: readonly string[]): string {
  const all = [value, ...parameters];
  return foldedHeader(
    name,
    all.map((item, index) => (index < all.length - 1 ? `${item};` : item)),
  );
}

/**
 * Content-Disposition (RFC 2183) with the file name. A short ASCII name is a quoted-string; any other is split over
 * RFC 2231 continuations, every one of them percent-encoded: parsers disagree about sections of both kinds beside each
 * other, and about backslashes in quoted-strings.
 */
export function dispositionHeader(disposition: 'attachment' | 'inline', filename: string): string {
  return parameterHeader('Content-Disposition', disposition, filenameParameters(headerText(filename)));
}

function filenameParameters(filename: string): string[] {
  if (filename === '') return [];
  const short = filename.length <= SECTION_CHARS_MAX && filename === filename.trim();
  if (short && /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(filename) && !looksEncoded(filename)) {
    return [`filename="${filename}"`];
  }
  const sections = [''];
  let room = SECTION_CHARS_MAX - "UTF-8''".length;
  for (const char of filename) {
    const encoded = extended(char);
    if (encoded.length > room) {
      sections.push('');
      room = SECTION_CHARS_MAX;
    }
    sections[sections.length - 1] += encoded;
    room -= encoded.length;
  }
  if (sections.length === 1) return [`filename*=UTF-8''${sections[0]}`];
  return sections.map((section, index) => `filename*${index}*=${index === 0 ? "UTF-8''" : ''}${section}`);
}

function extended(char: string): string {
  if (ATTRIBUTE_CHAR.test(char)) return char;
  // encodeURIComponent leaves these four, which end a value or start a comment.
  return encodeURIComponent(char).replace(/[!'()*]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}
