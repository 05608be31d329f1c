import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { invalidRequest, type Refusal, refuse } from '@pmail/core/result.ts';
import { findMessage, partsOf, readLabels } from './messages.ts';
import { messageResource } from './rows.ts';
import type { MailboxWorld } from './world.ts';

export interface MessagePatch {
  labels_add?: string[] | undefined;
  labels_remove?: string[] | undefined;
  read?: boolean | undefined;
}

/** Labels and the read mark of one message. Labels are removed before others are added. */
export function updateMessage(
  world: MailboxWorld,
  id: MessageId,
  patch: MessagePatch,
): { ok: true; message: MessageResource } | Refusal {
  const { sql } = world;
  return sql.transaction(() => {
    const row = findMessage(sql, id);
    if (row === undefined || row.status === 'hidden' || row.status === 'throttled' || row.status === 'quarantined') {
      return refuse('message_not_found');
    }
    const labels = new Set(readLabels(sql, row.rowid));
    for (const label of patch.labels_remove ?? []) labels.delete(label);
    for (const label of patch.labels_add ?? []) labels.add(label);
    if (labels.size > LIMITS.labels_per_message_max) {
      return invalidRequest({ path: 'labels_add', message: `would make more than ${LIMITS.labels_per_message_max}` });
    }
    sql.run('DELETE FROM labels WHERE message_rowid = ?', row.rowid);
    for (const label of labels) sql.run('INSERT INTO labels (message_rowid, label) VALUES (?, ?)', row.rowid, label);
    if (patch.read !== undefined && (row.read === 1) !== patch.read) {
      sql.run('UPDATE messages SET read = ? WHERE rowid = ?', patch.read ? 1 : 0, row.rowid);
      // A thread counts what arrived; what we sent is never unread mail.
      if (row.direction === 'inbound') {
        sql.run(
          'UPDATE threads SET unread_count = MAX(0, unread_count + ?) WHERE seq = ?',
          patch.read ? -1 : 1,
          row.thread_seq,
        );
      }
    }
    const after = findMessage(sql, id);
    if (after === undefined) throw new Error('message vanished');
    return { ok: true, message: messageResource(world.owner, partsOf(sql, after), { text: false, html: false }) };
  });
}
