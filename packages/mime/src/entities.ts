import { toCrlf } from '@pmail/core/compose/bodies.ts';
import type { ComposeAttachment } from '@pmail/core/compose/types.ts';
import { utf8 } from '@pmail/core/hash.ts';
import { encode as base64, wrap as wrapBase64 } from 'nodemailer/lib/base64';
import { encode as quotedPrintable, wrap as wrapQuotedPrintable } from 'nodemailer/lib/qp';
import { LINE_BYTES_MAX } from './header-lines.ts';
import { dispositionHeader, parameterHeader, safeContentType } from './parameters.ts';

/** A MIME entity (RFC 2045) as ASCII text: folded header fields, and the encoded body without a final line end. */
export interface Entity {
  headers: string[];
  body: string;
}

/** A text body in UTF-8. `boundaries` are the delimiters of the message, which the body must not show unencoded. */
export function textEntity(subtype: 'plain' | 'html', text: string, boundaries: readonly string[]): Entity {
  const body = toCrlf(text.toWellFormed());
  const { encoding, encoded } = transferText(body, boundaries);
  return {
    headers: [
      parameterHeader('Content-Type', `text/${subtype}`, ['charset=utf-8']),
      `Content-Transfer-Encoding: ${encoding}`,
    ],
    body: encoded,
  };
}

function transferText(
  text: string,
  boundaries: readonly string[],
): { encoding: '7bit' | 'quoted-printable' | 'base64'; encoded: string } {
  if (isShortAscii(text) && !boundaries.some((boundary) => text.includes(boundary))) {
    return { encoding: '7bit', encoded: text };
  }
  const bytes = Buffer.from(text, 'utf8');
  let escaped = 0;
  for (const byte of bytes) if (byte >= 0x7f || byte === 0x3d) escaped++;
  // Quoted-printable grows each such byte by two, base64 everything by a third; the readable one may cost a little more.
  if (escaped * 4 <= bytes.length) {
    return { encoding: 'quoted-printable', encoded: wrapQuotedPrintable(quotedPrintable(bytes)) };
  }
  return { encoding: 'base64', encoded: wrapBase64(base64(bytes)) };
}

function isShortAscii(text: string): boolean {
  return /^[\t\r\n\x20-\x7e]*$/.test(text) && !/[^\r\n]{77}/.test(text);
}

/** An attachment or inline part. */
export function attachmentEntity(attachment: ComposeAttachment, boundaries: readonly string[]): Entity {
  const { content, content_id, disposition, filename } = attachment;
  let type = safeContentType(attachment.content_type);
  let encoding = 'base64';
  let body: string | undefined;
  if (/^(?:message|multipart)\//i.test(type)) {
    // RFC 2046 section 5.2.1 forbids encoding these; one that cannot stand as it is goes as an opaque file.
    body = type.toLowerCase() === 'message/rfc822' ? asSevenBit(content, boundaries) : undefined;
    if (body === undefined) type = 'application/octet-stream';
    else encoding = '7bit';
  }
  body ??= wrapBase64(base64(Buffer.from(content.buffer, content.byteOffset, content.byteLength)));
  const headers = [parameterHeader('Content-Type', type, []), `Content-Transfer-Encoding: ${encoding}`];
  const id = content_id?.replace(/[^\x21-\x3b\x3d\x3f-\x7e]/g, '') ?? '';
  if (id !== '') headers.push(`Content-ID: <${id}>`);
  headers.push(dispositionHeader(disposition, filename));
  return { headers, body };
}

/** A message as 7-bit text with CRLF line ends, or `undefined` when it needs an encoding. */
function asSevenBit(content: Uint8Array<ArrayBuffer>, boundaries: readonly string[]): string | undefined {
  const text = toCrlf(Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('latin1'));
  const clean =
    /^[\x01-\x7f]*$/.test(text) && text.split('\r\n').every((line) => line.length <= LINE_BYTES_MAX) && text !== '';
  return clean && !boundaries.some((boundary) => text.includes(boundary)) ? text : undefined;
}

/** A multipart entity (RFC 2046 section 5.1); `parameters` are written beside the boundary. */
export function multipartEntity(
  subtype: 'mixed' | 'alternative' | 'related',
  boundary: string,
  children: readonly Entity[],
  parameters: readonly string[] = [],
): Entity {
  const headers = [parameterHeader('Content-Type', `multipart/${subtype}`, [...parameters, `boundary="${boundary}"`])];
  const parts = children.map((child) => `--${boundary}\r\n${child.headers.join('\r\n')}\r\n\r\n${child.body}\r\n`);
  return { headers, body: `${parts.join('')}--${boundary}--` };
}

/** The bytes of a whole message: its header fields, the blank line, its body, one line end. */
export function messageBytes(headers: readonly string[], entity: Entity): Uint8Array<ArrayBuffer> {
  const end = entity.body.endsWith('\r\n') || entity.body === '' ? '' : '\r\n';
  return utf8(`${[...headers, ...entity.headers].join('\r\n')}\r\n\r\n${entity.body}${end}`);
}
