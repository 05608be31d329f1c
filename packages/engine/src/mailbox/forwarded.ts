import type { Mailbox } from '@pmail/core/address/address.ts';
import { boundFilename, cleanFilename } from '@pmail/core/compose/filename.ts';
import type { ComposeAttachment, ForwardedMessage } from '@pmail/core/compose/types.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type AttachmentRow, type MessageRow, parseJson } from './rows.ts';
import type { MailboxWorld } from './world.ts';

type StoredAttachment = AttachmentRow & { r2_key: string };

/** The original's attachments, or that they cannot be read just now. */
export type ForwardedFiles =
  | { ok: true; attachments: ComposeAttachment[]; missing: string[] }
  | { ok: false; reason: 'not_stored_yet' };

/** What a forward says of the message that it carries. */
export function forwardedMessage(row: MessageRow, missing: string[]): ForwardedMessage {
  const text = [
    row.text ?? row.extracted_text ?? '',
    ...missing.map((name) => `[attachment no longer stored: ${name}]`),
  ];
  return {
    from: row.from_address === null ? null : { address: row.from_address, name: row.from_name ?? '' },
    sent_at: row.sent_at ?? row.received_at,
    subject: row.subject ?? '',
    to: parseJson<Mailbox[]>(row.to_json),
    text: text.filter((part) => part !== '').join('\n\n'),
    html: row.html_sanitized,
  };
}

/**
 * The original's attachments that carry no risk, to be attached again. One whose bytes are gone is named in the text;
 * bytes of mail that has only just arrived may still be on their way.
 */
export async function forwardedFiles(world: MailboxWorld, row: MessageRow): Promise<ForwardedFiles> {
  const rows = world.sql.all<StoredAttachment>(
    'SELECT * FROM attachments WHERE message_rowid = ? AND risk IS NULL ORDER BY position',
    row.rowid,
  );
  const attachments: ComposeAttachment[] = [];
  const missing: string[] = [];
  for (const stored of rows) {
    const bytes = await world.blobs.get(stored.r2_key);
    const filename = boundFilename(cleanFilename(stored.filename ?? '', stored.content_type));
    if (bytes === null) {
      if (row.direction === 'inbound' && world.now() - row.received_at < LIMITS.attachment_settle_ms) {
        return { ok: false, reason: 'not_stored_yet' };
      }
      missing.push(filename);
      continue;
    }
    attachments.push({
      id: world.newId('att', world.now()),
      filename,
      content_type: stored.content_type,
      disposition: stored.disposition === 'inline' && stored.content_id !== null ? 'inline' : 'attachment',
      content_id: stored.content_id,
      content: new Uint8Array(bytes),
    });
  }
  return { ok: true, attachments, missing };
}
