import { decodeWords as decodeWord } from 'postal-mime';

/** A piece of a header value: an encoded-word (RFC 2047 section 2), or the text between two. */
type Piece = string | Word;

interface Word {
  charset: string;
  encoding: string;
  text: string;
}

/**
 * A header value with its encoded-words decoded, as the parser does it. The parser by itself looks at all it has joined
 * for each further word, which makes a header of one megabyte take it minutes.
 */
export function decodeWords(value: string): string {
  if (!value.includes('=?')) return value;
  const pieces = split(value);
  const joined = render(pieces, true);
  // A character that two words share is one only when they are joined; some words must not be.
  return joined.includes('\ufffd') ? render(pieces, false) : joined;
}

/** Whether the value is made of encoded-words alone. */
export function isEncoded(value: string): boolean {
  const pieces = split(value);
  return pieces.some(isWord) && pieces.every((piece) => isWord(piece) || piece.trim() === '');
}

function split(value: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of value.matchAll(/=\?([^?\s]+)\?([QqBb])\?([^?]*)\?=/g)) {
    const [all, charset = '', encoding = '', text = ''] = match;
    if (match.index > end) pieces.push(value.slice(end, match.index));
    pieces.push({ charset, encoding: encoding.toUpperCase(), text });
    end = match.index + all.length;
  }
  if (end < value.length) pieces.push(value.slice(end));
  return pieces;
}

function isWord(piece: Piece | undefined): piece is Word {
  return typeof piece === 'object';
}

function render(pieces: readonly Piece[], join: boolean): string {
  const out: string[] = [];
  const open = new OpenWords(out);
  for (const [index, piece] of pieces.entries()) {
    if (isWord(piece)) {
      open.add(piece, join);
      continue;
    }
    // Blanks between encoded-words are no text (RFC 2047 section 6.2).
    if (open.any && isWord(pieces[index + 1]) && /^[ \t\r\n]+$/.test(piece)) continue;
    open.close();
    out.push(piece);
  }
  open.close();
  return out.join('');
}

/** Encoded-words that are decoded as one, since a character may stand half in one and half in the next. */
class OpenWords {
  readonly #out: string[];
  #words: Word[] = [];
  #length = 0;

  constructor(out: string[]) {
    this.#out = out;
  }

  get any(): boolean {
    return this.#words.length > 0;
  }

  add(word: Word, join: boolean): void {
    if (!join || !this.#goesOn(word)) this.close();
    this.#words.push(word);
    this.#length += word.text.length;
  }

  close(): void {
    const [first] = this.#words;
    if (first === undefined) return;
    const text = this.#words.map((word) => word.text).join('');
    this.#out.push(decodeWord(`=?${first.charset}?${first.encoding}?${text}?=`));
    this.#words = [];
    this.#length = 0;
  }

  #goesOn({ charset, encoding }: Word): boolean {
    const last = this.#words.at(-1);
    if (last?.charset !== charset || last.encoding !== encoding) return false;
    return encoding === 'Q' || (this.#length % 4 === 0 && !last.text.endsWith('='));
  }
}
