import { customFields, writtenOrRead } from '@pmail/core/cloudflare/headers.ts';
import { writtenFields } from '@pmail/core/compose/originator.ts';
import { utf8 } from '@pmail/core/hash.ts';
import type { OutgoingAttachment } from '@pmail/core/transport/types.ts';
import type { MailContent } from '@pmail/engine/consumers/world.ts';
import { parseMail } from '@pmail/mime/parse.ts';

/** A composed message read apart, for a provider that takes it in fields and composes one of its own. */
export async function readContent(mime: Uint8Array): Promise<MailContent> {
  const mail = await parseMail(mime);
  const people = [...mail.to, ...mail.cc].filter(({ name }) => name !== '');
  return {
    text: mail.text === null ? null : withoutLastEnd(mail.text),
    html: mail.html === null ? null : withoutLastEnd(mail.html),
    headers: writtenOrRead(customFields(writtenFields(mime)), customFields(mail.headers)),
    attachments: mail.attachments.map(asWritten),
    names: Object.fromEntries(people.map(({ address, name }) => [address, name])),
  };
}

/** The reader ends a text with a line end that the writer had not begun with. */
function withoutLastEnd(text: string): string {
  return text.replace(/\n$/, '');
}

/** A nested message stands in the composed one as text (RFC 2046 section 5.2.1), and is read as one, line by line. */
function asWritten(part: OutgoingAttachment): OutgoingAttachment {
  if (part.content_type !== 'message/rfc822') return part;
  const text = withoutLastEnd(new TextDecoder().decode(part.content));
  return { ...part, content: utf8(text.replace(/\n/g, '\r\n')) };
}
