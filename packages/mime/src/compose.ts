import { domainOf } from '@pmail/core/address/address.ts';
import { assembleBodies, type Bodies, rfc5322Date } from '@pmail/core/compose/bodies.ts';
import { composedMessageId, serviceHeaders } from '@pmail/core/compose/headers.ts';
import type { ComposedMail, ComposeInput, Composer } from '@pmail/core/compose/types.ts';
import { ulidOf } from '@pmail/core/ids.ts';
import { attachmentEntity, type Entity, messageBytes, multipartEntity, textEntity } from './entities.ts';
import {
  addressHeader,
  idHeader,
  isWritableId,
  subjectHeader,
  textHeader,
  urlListHeader,
  writtenAddress,
} from './header-lines.ts';
import { htmlToText } from './html-to-text.ts';
import { sanitizeHtml } from './sanitize.ts';

/**
 * Makes the composer of RFC 5322 / MIME messages. It keeps no state, reads no clock and draws no random numbers, so
 * equal input gives equal bytes.
 *
 * The codecs are nodemailer's; its tree and stream classes are not used, because they take a turn of the event loop for
 * every part, draw random boundaries, and let a bare CR, a long word and a name that looks encoded through.
 *
 * Promises of the bytes: ASCII only, lines of at most 998 bytes, CRLF and never a bare CR or LF, no Bcc field.
 * `text` and `html` of the result are the assembled bodies with the line ends that the caller gave; in the bytes every
 * line end is CRLF. Rejects with a `TypeError` when an address of the input is not one that core accepts.
 */
export function createComposer(): Composer {
  return { compose: async (input) => compose(input) };
}

function compose(input: ComposeInput): ComposedMail {
  const safeHtml = input.html === null ? null : sanitizeHtml(input.html);
  const text = input.text ?? (safeHtml === null ? null : htmlToText(safeHtml));
  const bodies = assembleBodies({ ...input, text });
  const rfc_message_id = composedMessageId(ulidOf(input.message_id), domainOf(writtenAddress(input.from.address)));
  return {
    mime: messageBytes(headerFields(input, rfc_message_id), contentEntity(input, bodies)),
    rfc_message_id,
    text: bodies.text,
    html: bodies.html,
    html_sanitized: bodies.html === null || bodies.html === input.html ? safeHtml : sanitizeHtml(bodies.html),
  };
}

function headerFields(input: ComposeInput, messageId: string): string[] {
  const fields = [addressHeader('From', [input.from])];
  if (input.reply_to !== null) fields.push(addressHeader('Reply-To', [input.reply_to]));
  if (input.to.length > 0) fields.push(addressHeader('To', input.to));
  if (input.cc.length > 0) fields.push(addressHeader('Cc', input.cc));
  fields.push(
    subjectHeader(input.subject),
    `Date: ${rfc5322Date(input.date)}`,
    idHeader('Message-ID', `<${messageId}>`),
  );
  const ids = {
    in_reply_to: input.in_reply_to !== null && isWritableId(input.in_reply_to) ? input.in_reply_to : null,
    references: input.references.filter(isWritableId),
  };
  for (const { name, value } of serviceHeaders({ ...input, ...ids })) fields.push(field(name, value));
  fields.push('MIME-Version: 1.0');
  return fields;
}

function field(name: string, value: string): string {
  switch (name) {
    case 'In-Reply-To':
    case 'References':
      return idHeader(name, value);
    case 'List-Unsubscribe':
      return urlListHeader(name, value);
    default:
      return textHeader(headerName(name), value);
  }
}

/** Header names are checked by core; what could end the name early is removed all the same. */
function headerName(name: string): string {
  return name.replace(/[^\x21-\x39\x3b-\x7e]/g, '');
}

/**
 * The MIME tree that mail programs expect: text and HTML as alternatives, the HTML together with the parts it shows,
 * and all of it before the attachments.
 */
function contentEntity(input: ComposeInput, { text, html }: Bodies): Entity {
  const id = ulidOf(input.message_id);
  // `=_` cannot appear in quoted-printable or base64 (RFC 2045 section 6.7), and all have one length, so none starts
  // another.
  const boundary = { mixed: `=_${id}_m`, related: `=_${id}_r`, alternative: `=_${id}_a` };
  const delimiters = [`--=_${id}_`];
  const inline = html === null ? [] : input.attachments.filter(isInlinePart);
  const attached = input.attachments.filter((attachment) => !inline.includes(attachment));

  const bodies: Entity[] = [];
  if (text !== null || html === null) bodies.push(textEntity('plain', text ?? '', delimiters));
  if (html !== null) {
    const htmlPart = textEntity('html', html, delimiters);
    const parts = inline.map((attachment) => attachmentEntity(attachment, delimiters));
    bodies.push(
      parts.length === 0
        ? htmlPart
        : multipartEntity('related', boundary.related, [htmlPart, ...parts], ['type="text/html"']),
    );
  }
  const [first] = bodies;
  const content =
    bodies.length === 1 && first !== undefined ? first : multipartEntity('alternative', boundary.alternative, bodies);
  if (attached.length === 0) return content;
  const files = attached.map((attachment) => attachmentEntity(attachment, delimiters));
  return multipartEntity('mixed', boundary.mixed, [content, ...files]);
}

function isInlinePart({ disposition, content_id }: ComposeInput['attachments'][number]): boolean {
  return disposition === 'inline' && content_id !== null;
}
