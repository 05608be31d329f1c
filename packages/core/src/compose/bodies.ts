import type { Mailbox } from '../address/address.ts';
import { rfc3339 } from '../time.ts';
import type { AttachmentLink, ComposeInput, ForwardedMessage } from './types.ts';

/** Characters with a meaning in HTML, replaced so that plain text shows as it is. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

/** Every kind of line end as CRLF (RFC 5322 section 2.3); a bare CR or LF never reaches a transport. */
export function toCrlf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n');
}

/**
 * A body as whoever gets the message reads it: one kind of line end, no byte order mark, no line ends after the last
 * word (a reader cannot tell them from the one that ends the part), the replacement sign for half a character. `null`
 * when nothing is left.
 *
 * What is kept of a sent message has to be this: it is read again from its bytes when a mailbox is put back, and its key
 * must then answer as before.
 */
export function bodyAsRead(text: string | null): string | null {
  if (text === null) return null;
  const lines = withoutLeadingMarks(text.toWellFormed()).replace(/\r\n?/g, '\n');
  let end = lines.length;
  while (lines[end - 1] === '\n') end--;
  return lines.slice(0, end) || null;
}

function withoutLeadingMarks(text: string): string {
  return text.replace(/^\ufeff+/, '');
}

/** Date as RFC 5322 section 3.3 writes it, in UTC. */
export function rfc5322Date(ms: number): string {
  return new Date(ms).toUTCString().replace('GMT', '+0000');
}

export interface Bodies {
  text: string | null;
  html: string | null;
}

/**
 * The two bodies in their fixed order: the caller's text, links to large attachments, the forwarded message, the signature, the AI disclosure, the
 * unsubscribe footer. `text` must already stand when only html was given (it is derived from it before).
 */
export function assembleBodies(
  input: Pick<ComposeInput, 'text' | 'html' | 'links' | 'signature' | 'disclosure' | 'unsubscribe' | 'forwarded'>,
): Bodies {
  let { html } = input;
  // A reader drops a byte order mark, and would take a text of nothing else for none.
  let text = input.text === null ? null : withoutLeadingMarks(input.text);
  const { signature, disclosure, unsubscribe, forwarded } = input;
  for (const link of input.links ?? []) {
    text = joinText(text, `${link.filename} (${link.size}): ${link.url} (available until ${rfc3339(link.expires_at)})`);
    if (html !== null) html += linkHtml(link);
  }
  if (forwarded !== null) {
    // A forward of an HTML message keeps its HTML even when the caller wrote plain text.
    if (html === null && forwarded.html !== null) html = text === null ? '' : paragraphs(text);
    if (html !== null) html += forwardHtml(forwarded);
    text = joinText(text, forwardText(forwarded));
  }
  if (signature.text !== null && text !== null) text += `\n\n-- \n${signature.text}`;
  if (html !== null) {
    const signatureHtml = signature.html ?? (signature.text === null ? null : lines(signature.text));
    if (signatureHtml !== null) html += `<br><br>-- <br>${signatureHtml}`;
  }
  if (disclosure.mode === 'footer') {
    if (text !== null) text += `\n\n${disclosure.text}`;
    if (html !== null) html += `<p>${escapeHtml(disclosure.text)}</p>`;
  }
  if (unsubscribe !== null) {
    const { url } = unsubscribe;
    const escaped = escapeHtml(url);
    if (text !== null && !text.includes(url)) text += `\n\nUnsubscribe: ${url}`;
    if (html !== null && !html.includes(url) && !html.includes(escaped)) {
      html += `<p><a href="${escaped}">Unsubscribe</a></p>`;
    }
  }
  return { text, html };
}

function linkHtml({ filename, size, url, expires_at }: AttachmentLink): string {
  const until = `(${escapeHtml(size)}, available until ${rfc3339(expires_at)})`;
  return `<p><a href="${escapeHtml(url)}">${escapeHtml(filename)}</a> ${until}</p>`;
}

function joinText(first: string | null, second: string): string {
  return first === null || first === '' ? second : `${first}\n\n${second}`;
}

function lines(text: string): string {
  return text
    .split(/\r\n|\r|\n/)
    .map(escapeHtml)
    .join('<br>');
}

function paragraphs(text: string): string {
  return `<p>${lines(text)}</p>`;
}

function show({ name, address }: Mailbox): string {
  return name === '' ? address : `${name} <${address}>`;
}

function noteLines(forwarded: ForwardedMessage): string[] {
  return [
    '---------- Forwarded message ---------',
    `From: ${forwarded.from === null ? '' : show(forwarded.from)}`,
    `Date: ${rfc5322Date(forwarded.sent_at)}`,
    `Subject: ${forwarded.subject}`,
    `To: ${forwarded.to.map(show).join(', ')}`,
  ];
}

function forwardText(forwarded: ForwardedMessage): string {
  return `${noteLines(forwarded).join('\n')}\n\n${forwarded.text ?? ''}`;
}

function forwardHtml(forwarded: ForwardedMessage): string {
  const note = noteLines(forwarded).map(escapeHtml).join('<br>');
  const original = forwarded.html ?? paragraphs(forwarded.text ?? '');
  return `<br><br>${note}<br><br><blockquote>${original}</blockquote>`;
}
