/** Mail as the parser gives it: HTML sanitised, text derived where the mail brings none. */
export interface ParsedMail {
  from: { address: string; name: string } | null;
  reply_to: { address: string; name: string }[];
  to: { address: string; name: string }[];
  cc: { address: string; name: string }[];
  subject: string;
  sent_at: number | null;
  rfc_message_id: string | null;
  in_reply_to: string[];
  references: string[];
  text: string | null;
  html_sanitized: string | null;
  hop: number;
  auto_submitted: boolean;
  parse_degraded: boolean;
  attachments: {
    filename: string | null;
    content_type: string;
    disposition: 'attachment' | 'inline' | null;
    content_id: string | null;
    content: Uint8Array<ArrayBuffer>;
  }[];
}
