import { createHash } from 'node:crypto';
import { toCrlf } from '@pmail/core/compose/bodies.ts';
import { boundFilename, cleanFilename } from '@pmail/core/compose/filename.ts';
import type { ComposeAttachment, ComposedMail, ComposeInput } from '@pmail/core/compose/types.ts';
import { expect } from 'vitest';
import { headerText } from './encoded-word.ts';

/** A plain text message; `overrides` make it the message of a test. */
export function composeInput(overrides: Partial<ComposeInput> = {}): ComposeInput {
  return {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    date: Date.UTC(2026, 10, 30, 8, 5, 9),
    from: { address: 'desk@acme.example.com', name: 'Acme Desk' },
    reply_to: null,
    to: [{ address: 'jo@example.org', name: 'Jo' }],
    cc: [],
    subject: 'Your booking 4471',
    text: 'Hello Jo,\n\nyour car is ready.\n',
    html: null,
    signature: { text: null, html: null },
    disclosure: { mode: 'none', text: '' },
    unsubscribe: null,
    list_unsubscribe: null,
    forwarded: null,
    in_reply_to: null,
    references: [],
    auto_submitted: false,
    hop: 1,
    headers: [],
    attachments: [],
    ...overrides,
  };
}

export function attachment(overrides: Partial<ComposeAttachment> = {}): ComposeAttachment {
  return {
    id: 'att_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    filename: 'invoice.pdf',
    content_type: 'application/pdf',
    disposition: 'attachment',
    content_id: null,
    content: bytes(300),
    ...overrides,
  };
}

/** Bytes of every value, so that an encoder that treats some of them differently shows. */
export function bytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length).map((_, index) => (index * 7 + (index >> 8)) & 0xff);
}

export function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

export function textOf(mime: Uint8Array): string {
  return Buffer.from(mime).toString('latin1');
}

/** Header block of a message with its folds. */
export function headerBlockOf(mime: Uint8Array): string {
  return textOf(mime).split('\r\n\r\n', 1)[0] ?? '';
}

/** Unfolded value of the first header of that name. */
export function headerOf(mime: Uint8Array, name: string): string | undefined {
  const unfolded = headerBlockOf(mime).replaceAll('\r\n ', ' ').split('\r\n');
  const line = unfolded.find((text) => text.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return line?.slice(name.length + 1).trim();
}

/** A body as a reader compares it: line ends and what stands at the end do not count, and nothing is no body. */
export function normalizedBody(text: string | null | undefined): string | null {
  const body = toCrlf(text ?? '')
    .replaceAll('\r\n', '\n')
    .trimEnd();
  return body === '' ? null : body;
}

/** A file name as core makes it: cleaned and bounded, and cleaned of the blank at which it may have been cut. */
export function safeFilename(name: string): string {
  const clean = (text: string): string => cleanFilename(text, 'application/pdf');
  return clean(boundFilename(clean(name.toWellFormed())));
}

/** What any conforming reader must find in the composed message. */
export interface Reading {
  subject: string;
  from: [string, string][];
  reply_to: [string, string][];
  to: [string, string][];
  cc: [string, string][];
  text: string | null;
  html: string | null;
  attachments: { filename: string; content_type: string; content_id: string | null; sha256: string }[];
}

export function expectedReading(input: ComposeInput, mail: ComposedMail): Reading {
  const shown = ({ name, address }: { name: string; address: string }): [string, string] => [
    headerText(name).trim(),
    address,
  ];
  return {
    subject: headerText(input.subject),
    from: [shown(input.from)],
    reply_to: input.reply_to === null ? [] : [shown(input.reply_to)],
    to: input.to.map(shown),
    cc: input.cc.map(shown),
    text: normalizedBody(mail.text?.toWellFormed()),
    html: normalizedBody(mail.html?.toWellFormed()),
    attachments: sortAttachments(
      input.attachments.map((part) => ({
        filename: safeFilename(part.filename),
        content_type: part.content_type.toLowerCase(),
        content_id: part.content_id,
        sha256: sha256(part.content),
      })),
    ),
  };
}

/** Readers list inline parts at different places, so the order is taken out. */
export function sortAttachments(list: Reading['attachments']): Reading['attachments'] {
  return list.toSorted((a, b) => `${a.filename} ${a.sha256}`.localeCompare(`${b.filename} ${b.sha256}`));
}

/** Everything that holds for the bytes of any composed message. */
export function expectSoundWire(mime: Uint8Array): void {
  const text = textOf(mime);
  expect(mime.every((byte) => byte < 0x80)).toBe(true);
  expect(text).not.toMatch(/\r(?!\n)|(?<!\r)\n/);
  expect(text.endsWith('\r\n')).toBe(true);
  expect(Math.max(...text.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  const headers = headerBlockOf(mime);
  expect(headers).not.toMatch(/^bcc:/im);
  for (const line of headers.split('\r\n')) {
    expect(line).toMatch(/^(?:[\x21-\x39\x3b-\x7e]+: ?| )[\x20-\x7e]*$/);
    expect(line.trim()).not.toBe('');
    // A longer line is one piece that nothing may be put into.
    if (line.length > 78) expect(line.replace(/^[^: ]+:/, '').trim()).not.toMatch(/(?<! ) (?! )/);
  }
  for (const [word, encoding, encoded = ''] of headers.matchAll(/=\?UTF-8\?([QB])\?([^?]*)\?=/g)) {
    expect(word.length).toBeLessThanOrEqual(75);
    // Throws when the word ends inside a character.
    new TextDecoder('utf-8', { fatal: true }).decode(wordBytes(encoding === 'B', encoded));
  }
}

function wordBytes(isBase64: boolean, encoded: string): Uint8Array {
  if (isBase64) return Buffer.from(encoded, 'base64');
  const raw = encoded.replace(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(raw, 'latin1');
}
