import type { ParsedMail } from '@pmail/engine/parsed-mail.ts';
import { htmlToText } from '@pmail/mime/html-to-text.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { sanitizeHtml } from '@pmail/mime/sanitize.ts';

/** Raw mail as the mailbox stores it: HTML sanitised, text derived where the mail brings none. */
export async function parseInbound(raw: Uint8Array): Promise<ParsedMail> {
  const mail = await parseMail(raw);
  const html = mail.html === null ? null : sanitizeHtml(mail.html);
  return {
    from: mail.from,
    reply_to: mail.reply_to,
    to: mail.to,
    cc: mail.cc,
    subject: mail.subject,
    sent_at: mail.date,
    rfc_message_id: mail.message_id,
    in_reply_to: mail.in_reply_to,
    references: mail.references,
    text: mail.text ?? (html === null ? null : htmlToText(html)),
    html_sanitized: html,
    hop: mail.hop,
    auto_submitted: mail.auto_submitted,
    parse_degraded: mail.parse_degraded,
    attachments: mail.attachments,
  };
}
