import type { ParsedMail } from '@pmail/engine/parsed-mail.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { htmlToText } from '@pmail/mime/html-to-text.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { sanitizeHtml } from '@pmail/mime/sanitize.ts';

/** Composing and reading mail as the Worker does it. */

export const composer = createComposer();

export async function parse(raw: Uint8Array): Promise<ParsedMail> {
  const mail = await parseMail(raw);
  const html = mail.html === null ? null : sanitizeHtml(mail.html);
  return {
    ...mail,
    sent_at: mail.date,
    rfc_message_id: mail.message_id,
    text: mail.text ?? (html === null ? null : htmlToText(html)),
    html_sanitized: html,
  };
}
