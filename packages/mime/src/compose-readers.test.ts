import { type AddressObject, simpleParser } from 'mailparser';
import { describe, expect, it } from 'vitest';
import { createComposer } from './compose.ts';
import { COMPOSE_CASES } from './compose-cases.ts';
import { parseMail } from './parse.ts';
import {
  expectedReading,
  expectSoundWire,
  headerOf,
  normalizedBody,
  type Reading,
  sha256,
  sortAttachments,
} from './test-support.ts';

const composer = createComposer();

async function ourReading(mime: Uint8Array): Promise<Reading> {
  const mail = await parseMail(mime);
  const shown = ({ name, address }: { name: string; address: string }): [string, string] => [name, address];
  expect(mail.parse_degraded).toBe(false);
  return {
    subject: mail.subject,
    from: mail.from === null ? [] : [shown(mail.from)],
    reply_to: mail.reply_to.map(shown),
    to: mail.to.map(shown),
    cc: mail.cc.map(shown),
    text: normalizedBody(mail.text),
    html: normalizedBody(mail.html),
    attachments: sortAttachments(
      mail.attachments.map(({ filename, content_type, content_id, content }) => ({
        filename,
        content_type,
        content_id,
        sha256: sha256(content),
      })),
    ),
  };
}

async function mailparserReading(mime: Uint8Array): Promise<Reading> {
  const mail = await simpleParser(Buffer.from(mime), {
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    skipTextLinks: true,
  });
  const shown = (field: AddressObject | AddressObject[] | undefined): [string, string][] =>
    [field ?? []]
      .flat()
      .flatMap((list) => list.value.map(({ name, address }): [string, string] => [name, address ?? '']));
  return {
    subject: mail.subject ?? '',
    from: shown(mail.from),
    reply_to: shown(mail.replyTo),
    to: shown(mail.to),
    cc: shown(mail.cc),
    text: normalizedBody(mail.text),
    html: normalizedBody(mail.html === false ? null : mail.html),
    attachments: sortAttachments(
      mail.attachments.map((part) => ({
        filename: part.filename ?? '',
        content_type: part.contentType,
        content_id: part.cid ?? null,
        sha256: sha256(part.content),
      })),
    ),
  };
}

describe.each(COMPOSE_CASES)('$name', ({ input, notInPostalMime }) => {
  it('is sound on the wire and the same every time', async () => {
    const first = await composer.compose(input);
    expectSoundWire(first.mime);
    const second = await createComposer().compose(structuredClone(input));
    expect(Buffer.from(second.mime).equals(Buffer.from(first.mime))).toBe(true);
    expect(headerOf(first.mime, 'Message-ID')).toBe(`<${first.rfc_message_id}>`);
  });

  it.skipIf(notInPostalMime)('comes back through our own parser', async () => {
    const mail = await composer.compose(input);
    expect(await ourReading(mail.mime)).toEqual(expectedReading(input, mail));
  });

  it('comes back through mailparser', async () => {
    const mail = await composer.compose(input);
    expect(await mailparserReading(mail.mime)).toEqual(expectedReading(input, mail));
  });
});
