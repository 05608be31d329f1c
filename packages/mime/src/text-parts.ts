import { htmlToText } from './html-to-text.ts';
import { sanitizeHtml } from './sanitize.ts';

/** Texts of one part or of one multipart/alternative, as the parser sorts them: by their types, in order. */
export interface TextParts {
  plain?: { value: string }[];
  html?: { value: string }[];
}

/**
 * The plain-text body and the HTML body out of the texts of a message. Where some have one form only, the other is made
 * of it, as the parser does; but it would make text of HTML with patterns that take hours for some of 20 KB.
 */
export function renderBodies(parts: readonly TextParts[]): { text?: string; html?: string } {
  const bodies: { text?: string; html?: string } = {};
  if (parts.some(({ plain }) => plain !== undefined)) {
    bodies.text = parts.flatMap(({ plain, html }) => plain?.map(value) ?? html?.map(asText) ?? []).join('\n');
  }
  if (parts.some(({ html }) => html !== undefined)) {
    bodies.html = parts.flatMap(({ plain, html }) => html?.map(value) ?? plain?.map(asHtml) ?? []).join('\n');
  }
  return bodies;
}

function value(part: { value: string }): string {
  return part.value;
}

function asText(part: { value: string }): string {
  return htmlToText(sanitizeHtml(part.value));
}

function asHtml(part: { value: string }): string {
  const escaped = part.value
    .trim()
    .replace(/[<>"'?&]/g, (char) => `&#x${char.charCodeAt(0).toString(16).toUpperCase()};`);
  return `<div>${escaped.replaceAll('\n', '<br />')}</div>`;
}
