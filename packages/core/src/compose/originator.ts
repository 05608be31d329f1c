import type { Address } from '../address/address.ts';
import { concatBytes, utf8 } from '../hash.ts';

/** Changes of a composed message after its acceptance. There is one only: whom it is from, when its domain falls back. */

const LINE_PREFERRED = 78;

/** One header field as it stands, folded, with its line end. */
interface Field {
  name: string;
  text: string;
}

/**
 * The same message from another address: From with the same name, and Reply-To, which goes away when it is null. All
 * other bytes stay. Takes messages of our own composer, which writes ASCII headers and one address in From.
 */
export function rewriteOriginator(mime: Uint8Array, from: Address, replyTo: Address | null): Uint8Array<ArrayBuffer> {
  const end = headerEnd(mime);
  const fields = readFields(mime.subarray(0, end));
  const original = fields.find(({ name }) => name === 'from');
  if (original === undefined) throw new Error('a composed message without From');
  const out = fields.flatMap((field) => {
    if (field.name === 'reply-to') return [];
    if (field !== original) return [field.text];
    const lines = [withAddress('From', original, from)];
    if (replyTo !== null) lines.push(withAddress('Reply-To', original, replyTo));
    return lines;
  });
  return concatBytes(utf8(out.join('')), mime.subarray(end));
}

/** The Message-ID that a message carries, without brackets, or null. */
export function messageIdOf(mime: Uint8Array): string | null {
  const field = readFields(mime.subarray(0, headerEnd(mime))).find(({ name }) => name === 'message-id');
  return /<([^<>\s]+)>/.exec(field?.text ?? '')?.[1] ?? null;
}

/** The fields of a message's header as they are written, unfolded but not decoded. */
export function writtenFields(mime: Uint8Array): { name: string; value: string }[] {
  return readFields(mime.subarray(0, headerEnd(mime))).map(({ text }) => ({
    name: text.slice(0, text.indexOf(':')).trim(),
    value: text
      .slice(text.indexOf(':') + 1)
      .replace(/\r\n/g, '')
      .trim(),
  }));
}

/** A field with the display name of another and an address of its own. */
function withAddress(name: string, { text }: Field, address: Address): string {
  const value = text.slice(text.indexOf(':') + 1).replace(/\r\n$/, '');
  // The address stands last, in brackets when a name stands before it. A name in quotes ends before them.
  const bracket = /\s*<[^<>]*>\s*$/.exec(value);
  const before = bracket === null ? '' : value.slice(0, bracket.index);
  const written = before.trim() === '' ? address : `<${address}>`;
  const start = `${name}:${before}`;
  const lastLine = start.slice(start.lastIndexOf('\n') + 1);
  const fits = lastLine.length + 1 + written.length <= LINE_PREFERRED;
  return `${start}${fits ? '' : '\r\n'} ${written}\r\n`;
}

/** Where the header block ends: before the empty line. */
function headerEnd(mime: Uint8Array): number {
  for (let i = 0; i + 3 < mime.length; i++) {
    if (mime[i] === 0x0d && mime[i + 1] === 0x0a && mime[i + 2] === 0x0d && mime[i + 3] === 0x0a) return i + 2;
  }
  return mime.length;
}

function readFields(header: Uint8Array): Field[] {
  const text = new TextDecoder('latin1').decode(header);
  return text.split(/(?<=\r\n)(?![ \t])/).map((field) => ({
    name: field.slice(0, field.indexOf(':')).trim().toLowerCase(),
    text: field,
  }));
}
