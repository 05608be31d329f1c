import { withoutMarks } from '@pmail/core/address/names.ts';
import { encodeWord } from 'nodemailer/lib/mime-funcs';

/**
 * Bytes of one encoded-word. RFC 2047 section 2 allows 75; with 68 the first one still fits behind `Reply-To: ` on a
 * line of 78.
 */
const WORD_BYTES_MAX = 68;

/** Names from received mail can be long; with every character escaped this many still fit a line. */
const PLAIN_NAME_CHARS_MAX = 256;

const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * Text that can stand in one header: every run of control characters (CR and LF among them) becomes one blank, a
 * surrogate without its partner the replacement sign. Byte order marks go.
 */
export function headerText(text: string): string {
  return withoutMarks(text.toWellFormed()).replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g, ' ');
}

/**
 * RFC 2047 encoded-words of the whole text, each of at most 75 characters and none of them ending inside a character.
 * All of it is encoded, not only the words that need it: blanks between encoded and plain words get lost in some mail
 * programs.
 */
export function encodedWords(text: string): string[] {
  return encodeWord(text, prefersQ(text) ? 'Q' : 'B', WORD_BYTES_MAX).split(' ');
}

/** Q keeps mostly-Latin text readable; for other scripts B is a third of the size. */
function prefersQ(text: string): boolean {
  let letters = 0;
  let others = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) others++;
    else if ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a) letters++;
  }
  return others < letters;
}

/**
 * Whether a decoder could take part of the text for an encoded-word. Decoders differ in what they accept, so the two
 * opening characters are enough; such text is encoded and comes back as it was.
 */
export function looksEncoded(text: string): boolean {
  return text.includes('=?');
}

/**
 * A display name as the tokens of an RFC 5322 phrase, between which a line may be folded: atoms, the pieces of one
 * quoted-string, or encoded-words. `[]` for an empty name. A long ASCII word stays as it is: a name is short enough for
 * a line, and some readers put a blank between encoded-words.
 */
export function phrase(name: string): string[] {
  const text = headerText(name).trim();
  if (text === '') return [];
  if (!PRINTABLE.test(text) || looksEncoded(text) || text.length > PLAIN_NAME_CHARS_MAX) return encodedWords(text);
  if (ATOMS.test(text)) return text.split(' ');
  // Two blanks in a row stay together, or folding could lose one.
  return `"${text.replace(/["\\]/g, '\\$&')}"`.split(/(?<! ) (?! )/);
}

/**
 * An unstructured header value (RFC 5322 section 3.2.5) as tokens between which a line may be folded: the words as
 * they are, or encoded-words when the value is not plain ASCII, could be read as encoded, has blanks that folding
 * would lose, or a word longer than `wordMax`.
 *
 * @param room characters left on the first line
 */
export function unstructured(value: string, room: number, wordMax: number): string[] {
  const text = headerText(value);
  if (text === '') return [];
  if (PRINTABLE.test(text) && text === text.trim() && !looksEncoded(text)) {
    if (text.length <= room) return [text];
    const words = text.split(' ');
    // A blank word stands for two blanks in a row.
    if (words.every((word) => word !== '' && word.length <= wordMax)) return words;
  }
  return encodedWords(text);
}
