import type { Mailbox } from '../address/address.ts';
import type { AttachmentId, MessageId } from '../ids.ts';

/** A part beside the body text; `content` holds the decoded bytes. */
export interface ComposeAttachment {
  id: AttachmentId;
  filename: string;
  content_type: string;
  disposition: 'attachment' | 'inline';
  content_id: string | null;
  content: Uint8Array<ArrayBuffer>;
}

/** The message a forward carries along. */
export interface ForwardedMessage {
  from: Mailbox | null;
  /** Unix ms. */
  sent_at: number;
  subject: string;
  to: Mailbox[];
  text: string | null;
  /** Sanitised. */
  html: string | null;
}

/** An attachment that was too large to send, as the text shows it. */
export interface AttachmentLink {
  filename: string;
  /** For people, such as "3.4 MB". */
  size: string;
  url: string;
  /** Unix ms. */
  expires_at: number;
}

/** Everything that decides the bytes of a message. The same input always gives the same bytes. */
export interface ComposeInput {
  message_id: MessageId;
  /** Unix ms; the Date header. */
  date: number;
  from: Mailbox;
  reply_to: Mailbox | null;
  /** Bcc recipients are never composed. */
  to: Mailbox[];
  cc: Mailbox[];
  subject: string;
  text: string | null;
  html: string | null;
  signature: { text: string | null; html: string | null };
  disclosure: { mode: 'none' | 'footer' | 'header'; text: string };
  unsubscribe: { url: string; mailto: string | null } | null;
  /** Only the system identity's mail: one-click headers without a visible footer. */
  list_unsubscribe: { url: string } | null;
  forwarded: ForwardedMessage | null;
  /** Message-IDs without angle brackets. */
  in_reply_to: string | null;
  references: string[];
  auto_submitted: boolean;
  hop: number;
  headers: { name: string; value: string }[];
  attachments: ComposeAttachment[];
  /** Stand behind the caller's text. */
  links?: AttachmentLink[];
}

export interface ComposedMail {
  mime: Uint8Array<ArrayBuffer>;
  /** Message-ID as written, without angle brackets. */
  rfc_message_id: string;
  /** The bodies as sent: derived text, signature, disclosure and footers included. */
  text: string | null;
  html: string | null;
  /** The sent HTML after the inbound sanitiser, for showing. */
  html_sanitized: string | null;
}

/** The one place that turns a message into bytes. */
export interface Composer {
  compose(input: ComposeInput): Promise<ComposedMail>;
}
