import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';

/** Endings for attachments whose name is nothing after cleaning; anything else gets none. */
const ENDINGS: Record<string, string> = {
  'application/pdf': '.pdf',
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/gif': '.gif',
  'image/webp': '.webp',
  'text/plain': '.txt',
  'text/html': '.html',
  'text/csv': '.csv',
  'text/calendar': '.ics',
  'application/json': '.json',
  'application/zip': '.zip',
};

/**
 * A file name that is safe in a header and on a disk: no path, no control or direction-override characters, no
 * leading or trailing dots and blanks. Nothing left becomes `attachment` with the type's ending.
 */
export function cleanFilename(name: string, contentType: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  const cleaned = trimDotsEnd(
    last.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, ''),
  ).replace(/^[.\s]+/, '');
  if (cleaned !== '') return cleaned;
  const type = contentType.toLowerCase();
  return `attachment${Object.hasOwn(ENDINGS, type) ? ENDINGS[type] : ''}`;
}

/** A name cut to the bound on a character boundary, keeping a short ending; for names that we do not refuse. */
export function boundFilename(name: string): string {
  const max = LIMITS.attachment_filename_bytes_max;
  if (utf8Length(name) <= max) return name;
  const dot = name.lastIndexOf('.');
  const ending = dot > 0 && utf8Length(name.slice(dot)) <= 16 ? name.slice(dot) : '';
  let stem = '';
  let bytes = utf8Length(ending);
  for (const char of ending === '' ? name : name.slice(0, dot)) {
    bytes += utf8Length(char);
    if (bytes > max) break;
    stem += char;
  }
  return trimDotsEnd(stem) + ending;
}

/** Text without the dots and blanks at its end, however they are mixed. */
function trimDotsEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '.' || text[end - 1]?.trim() === '')) end--;
  return text.slice(0, end);
}
