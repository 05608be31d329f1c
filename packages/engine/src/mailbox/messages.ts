import type { MessageId, ThreadId } from '@pmail/core/ids.ts';
import type { Sql } from '../sql.ts';
import { placeholders } from '../sql.ts';
import type { AttachmentRow, DeliveryRow, MessageParts, MessageRow } from './rows.ts';

/** Reading messages with what belongs to them. */

export function findMessage(sql: Sql, id: MessageId): MessageRow | undefined {
  return sql.first<MessageRow>('SELECT * FROM messages WHERE id = ?', id);
}

export function readDeliveries(sql: Sql, rowid: number): DeliveryRow[] {
  return sql.all<DeliveryRow>('SELECT * FROM deliveries WHERE message_rowid = ? ORDER BY position', rowid);
}

export function threadIdOf(sql: Sql, seq: number): ThreadId {
  const row = sql.first<{ id: ThreadId }>('SELECT id FROM threads WHERE seq = ?', seq);
  if (row === undefined) throw new Error(`no thread ${seq}`);
  return row.id;
}

export function readLabels(sql: Sql, rowid: number): string[] {
  return sql
    .all<{ label: string }>('SELECT label FROM labels WHERE message_rowid = ? ORDER BY label', rowid)
    .map(({ label }) => label);
}

/** Everything about the given rows, in their order. */
export function withParts(sql: Sql, rows: MessageRow[]): MessageParts[] {
  if (rows.length === 0) return [];
  const rowids = rows.map(({ rowid }) => rowid);
  const marks = placeholders(rowids.length);
  const deliveries = groupBy(
    sql.all<DeliveryRow>(`SELECT * FROM deliveries WHERE message_rowid IN (${marks}) ORDER BY position`, ...rowids),
  );
  const attachments = groupBy(
    sql.all<AttachmentRow>(`SELECT * FROM attachments WHERE message_rowid IN (${marks}) ORDER BY position`, ...rowids),
  );
  const labels = groupBy(
    sql.all<{ message_rowid: number; label: string }>(
      `SELECT message_rowid, label FROM labels WHERE message_rowid IN (${marks})`,
      ...rowids,
    ),
  );
  const seqs = [...new Set(rows.map(({ thread_seq }) => thread_seq))];
  const threads = new Map(
    sql
      .all<{ seq: number; id: ThreadId }>(
        `SELECT seq, id FROM threads WHERE seq IN (${placeholders(seqs.length)})`,
        ...seqs,
      )
      .map(({ seq, id }) => [seq, id]),
  );
  return rows.map((row) => {
    const threadId = threads.get(row.thread_seq);
    if (threadId === undefined) throw new Error(`no thread ${row.thread_seq}`);
    return {
      row,
      thread_id: threadId,
      deliveries: deliveries.get(row.rowid) ?? [],
      attachments: attachments.get(row.rowid) ?? [],
      labels: (labels.get(row.rowid) ?? []).map(({ label }) => label),
    };
  });
}

export function partsOf(sql: Sql, row: MessageRow): MessageParts {
  const [parts] = withParts(sql, [row]);
  if (parts === undefined) throw new Error('no message');
  return parts;
}

function groupBy<T extends { message_rowid: number }>(rows: T[]): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const row of rows) {
    const group = groups.get(row.message_rowid);
    if (group === undefined) groups.set(row.message_rowid, [row]);
    else group.push(row);
  }
  return groups;
}
