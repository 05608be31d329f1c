import { customFields, writtenOrRead } from '@pmail/core/cloudflare/headers.ts';
import { writtenFields } from '@pmail/core/compose/originator.ts';
import type { MailContent } from '@pmail/engine/consumers/world.ts';
import { parseMail } from '@pmail/mime/parse.ts';

/** A composed message read apart, for a provider that takes it in fields and composes one of its own. */
export async function readContent(mime: Uint8Array): Promise<MailContent> {
  const mail = await parseMail(mime);
  const people = [...mail.to, ...mail.cc].filter(({ name }) => name !== '');
  return {
    // The reader ends a text with a line end, which the writer had not begun with.
    text: mail.text?.replace(/\n$/, '') ?? null,
    html: mail.html?.replace(/\n$/, '') ?? null,
    headers: writtenOrRead(customFields(writtenFields(mime)), customFields(mail.headers)),
    attachments: mail.attachments,
    names: Object.fromEntries(people.map(({ address, name }) => [address, name])),
  };
}
