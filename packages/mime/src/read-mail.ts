import { htmlToText } from './html-to-text.ts';
import { type ParsedMail, parseMail } from './parse.ts';
import { sanitizeHtml } from './sanitize.ts';

/** Mail as a mailbox stores it. Without its other headers: they can be read again from the raw message. */
export interface ReadMail
  extends Pick<
    ParsedMail,
    | 'from'
    | 'reply_to'
    | 'to'
    | 'cc'
    | 'subject'
    | 'in_reply_to'
    | 'references'
    | 'text'
    | 'hop'
    | 'auto_submitted'
    | 'parse_degraded'
    | 'attachments'
  > {
  /** Time of its Date, in ms. */
  sent_at: number | null;
  /** Message-ID without angle brackets. */
  rfc_message_id: string | null;
  html_sanitized: string | null;
}

/** Raw mail as a mailbox stores it: HTML sanitised, text derived where the mail brings none. Never rejects. */
export async function readMail(raw: Uint8Array): Promise<ReadMail> {
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
