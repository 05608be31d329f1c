import type { Sql } from '../sql.ts';
import type { MessageRow } from './rows.ts';

/** Bytes of a body that are indexed for search; the rest of a very long mail is not. */
const BODY_CHARS_MAX = 65_536;

/** Adds a message to the keyword index. The index stores no text, only where words occur. */
export function indexMessage(sql: Sql, row: MessageRow, participants: string[], filenames: string[]): void {
  const full = (row.text ?? '').slice(0, BODY_CHARS_MAX);
  const extracted = (row.extracted_text ?? '').slice(0, BODY_CHARS_MAX);
  sql.run(
    `INSERT INTO fts (rowid, subject, participants, body_new, body_full, attachments, refs) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    row.rowid,
    row.subject ?? '',
    [`${row.from_name ?? ''} ${row.from_address ?? ''}`, ...participants].join(' '),
    extracted,
    full === extracted ? '' : full,
    filenames.join(' '),
    [row.rfc_message_id ?? '', row.in_reply_to ?? ''].join(' ').trim(),
  );
}

/**
 * An FTS5 query that demands every word of the user's text, each quoted so that no character of it is syntax.
 * Undefined when the text holds nothing to search for.
 */
export function keywordQuery(text: string): string | undefined {
  // SQLite reads the query up to the first NUL, which would leave its word without the closing quote.
  const words = text.split(/[\s\0]+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
  if (words.length === 0) return undefined;
  return words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' AND ');
}
