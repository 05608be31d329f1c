import type { AttachmentId } from '@pmail/core/ids.ts';
import type { Sql } from '../sql.ts';

/** An attachment as its row holds it; the bytes are in the object store. */
export interface StoredAttachment {
  id: AttachmentId;
  filename: string | null;
  content_type: string;
  disposition: 'attachment' | 'inline' | null;
  content_id: string | null;
  sha256: string;
  size: number;
  r2_key: string;
}

export function insertAttachments(sql: Sql, messageRowid: number, attachments: StoredAttachment[]): void {
  attachments.forEach((attachment, position) => {
    sql.run(
      `INSERT INTO attachments (id, message_rowid, filename, content_type, size, sha256, disposition, content_id,
         r2_key, text_status, position)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'skipped', ?)`,
      attachment.id,
      messageRowid,
      attachment.filename,
      attachment.content_type,
      attachment.size,
      attachment.sha256,
      attachment.disposition,
      attachment.content_id,
      attachment.r2_key,
      position,
    );
  });
}
