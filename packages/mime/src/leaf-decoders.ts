/**
 * Bodies of parts, many lines at a time. The parser's own decoders take a line each and keep an object for it, which
 * costs microseconds and a hundred bytes for a line of one byte; these give the same bytes.
 */
export interface LeafDecoder {
  /** Whole lines as they stand in the message, each with its line end. */
  lines(block: Uint8Array): void;
  /** One line without its end; the parser calls it. */
  update(line: Uint8Array): void;
  finalize(): Promise<ArrayBuffer>;
}

/** @param encoding Content-Transfer-Encoding, lower case; `null` for a body that nobody reads */
export function leafDecoder(encoding: string | null): LeafDecoder {
  if (encoding === null) return new Unread();
  if (encoding.includes('base64')) return new Base64Lines();
  return encoding.includes('quoted-printable') ? new QuotedLines() : new PlainLines();
}

const [CR, LF, EQUALS] = [0x0d, 0x0a, 0x3d];

abstract class Lines implements LeafDecoder {
  readonly #chunks: Uint8Array[] = [];

  update(line: Uint8Array): void {
    const whole = new Uint8Array(line.length + 1);
    whole.set(line);
    whole[line.length] = LF;
    this.lines(whole);
  }

  lines(block: Uint8Array): void {
    // The last character of a base64 group can be all that a block holds of it: one byte in, three out.
    const out = new Uint8Array(block.length + 3);
    this.keep(out.subarray(0, this.decode(block, out)));
  }

  async finalize(): Promise<ArrayBuffer> {
    const content = new Uint8Array(this.#chunks.reduce((size, chunk) => size + chunk.length, 0));
    let at = 0;
    for (const chunk of this.#chunks) {
      content.set(chunk, at);
      at += chunk.length;
    }
    this.#chunks.length = 0;
    return content.buffer;
  }

  protected keep(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#chunks.push(bytes);
  }

  /** @returns how many bytes it wrote: three more than it was given at most */
  protected abstract decode(block: Uint8Array, out: Uint8Array): number;
}

class Unread implements LeafDecoder {
  lines(): void {}
  update(): void {}

  async finalize(): Promise<ArrayBuffer> {
    return new ArrayBuffer(0);
  }
}

/** 7bit, 8bit, binary: line ends become `\n`, carriage returns before one are dropped. */
class PlainLines extends Lines {
  protected override decode(block: Uint8Array, out: Uint8Array): number {
    let size = 0;
    let lineStart = 0;
    for (let i = 0; i < block.length; i++) {
      const byte = block[i] as number;
      if (byte === LF) {
        while (size > lineStart && out[size - 1] === CR) size--;
        lineStart = size + 1;
      }
      out[size++] = byte;
    }
    return size;
  }
}

/** RFC 2045 section 6.7; what is no escape sequence stays as it is. */
class QuotedLines extends Lines {
  protected override decode(block: Uint8Array, out: Uint8Array): number {
    let size = 0;
    for (let start = 0; start < block.length; ) {
      let newline = start;
      while (newline < block.length && block[newline] !== LF) newline++;
      let end = newline;
      while (end > start && block[end - 1] === CR) end--;
      const soft = end > start && block[end - 1] === EQUALS;
      if (soft) end--;
      for (let i = start; i < end; i++) {
        const byte = block[i] as number;
        const escaped = byte === EQUALS && i + 2 < end ? octet(block[i + 1] as number, block[i + 2] as number) : -1;
        out[size++] = escaped < 0 ? byte : escaped;
        if (escaped >= 0) i += 2;
      }
      if (!soft) out[size++] = LF;
      start = newline + 1;
    }
    return size;
  }
}

/** RFC 2045 section 6.8. Padding ends a unit wherever it stands: some programs pad every line. */
class Base64Lines extends Lines {
  #bits = 0;
  /** Characters of the group of four that is not full yet. */
  #pending = 0;

  protected override decode(block: Uint8Array, out: Uint8Array): number {
    let size = 0;
    for (let i = 0; i < block.length; i++) {
      const byte = block[i] as number;
      if (byte === EQUALS) {
        size = this.#endUnit(out, size);
        continue;
      }
      const value = BASE64[byte] as number;
      if (value < 0) continue;
      this.#bits = (this.#bits << 6) | value;
      if (++this.#pending < 4) continue;
      out[size++] = this.#bits >> 16;
      out[size++] = this.#bits >> 8;
      out[size++] = this.#bits;
      this.#pending = this.#bits = 0;
    }
    return size;
  }

  override async finalize(): Promise<ArrayBuffer> {
    const out = new Uint8Array(2);
    this.keep(out.subarray(0, this.#endUnit(out, 0)));
    return super.finalize();
  }

  #endUnit(out: Uint8Array, from: number): number {
    let size = from;
    if (this.#pending === 2) out[size++] = this.#bits >> 4;
    if (this.#pending === 3) {
      out[size++] = this.#bits >> 10;
      out[size++] = this.#bits >> 2;
    }
    this.#pending = this.#bits = 0;
    return size;
  }
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** The six bits of a character, -1 for any other byte. */
const BASE64 = Int8Array.from({ length: 256 }, (_, byte) => ALPHABET.indexOf(String.fromCharCode(byte)));

function octet(high: number, low: number): number {
  const [a, b] = [nibble(high), nibble(low)];
  return a < 0 || b < 0 ? -1 : (a << 4) | b;
}

function nibble(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
