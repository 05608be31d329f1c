import { LIMITS } from '../limits.ts';

/**
 * A message on its way behind DATA (RFC 5321 section 4.5.2): every line ends with CRLF, a dot at the start of a line is
 * doubled, and the last line is ended. A bare CR or LF would let one message be read as two by servers that take it for a
 * line's end, so either becomes CRLF; composed mail has none.
 */

const CR = 0x0d;
const LF = 0x0a;
const DOT = 0x2e;

/** What ends the data, once the last line has its CRLF. */
export const FINAL_DOT: Uint8Array = Uint8Array.of(DOT, CR, LF);

/** The bytes in pieces of bounded size, without the final dot. */
export function* dotStuffed(mime: Uint8Array): Generator<Uint8Array> {
  const full = LIMITS.smtp_body_chunk_bytes;
  // A byte of the message becomes two at most.
  let out = new Uint8Array(Math.min(full + 1, mime.length * 2));
  let length = 0;
  let atStart = true;
  for (let at = 0; at < mime.length; at++) {
    const byte = mime[at] ?? 0;
    if (byte === CR || byte === LF) {
      if (byte === CR && mime[at + 1] === LF) at++;
      out[length++] = CR;
      out[length++] = LF;
      atStart = true;
    } else {
      if (atStart && byte === DOT) out[length++] = DOT;
      out[length++] = byte;
      atStart = false;
    }
    if (length < full) continue;
    yield out.subarray(0, length);
    out = new Uint8Array(Math.min(full + 1, (mime.length - at) * 2));
    length = 0;
  }
  if (!atStart) {
    yield withLineEnd(out, length);
  } else if (length > 0) yield out.subarray(0, length);
}

function withLineEnd(out: Uint8Array, length: number): Uint8Array {
  const last = new Uint8Array(length + 2);
  last.set(out.subarray(0, length));
  last.set([CR, LF], length);
  return last;
}

/** Octets of the message as it is sent, without the added dots: what `SIZE=` names (RFC 1870 section 6.1). */
export function wireSize(mime: Uint8Array): number {
  let size = 0;
  let atStart = true;
  for (let at = 0; at < mime.length; at++) {
    const byte = mime[at];
    atStart = byte === CR || byte === LF;
    if (byte === CR && mime[at + 1] === LF) at++;
    size += atStart ? 2 : 1;
  }
  return atStart ? size : size + 2;
}
