import { withoutMarks } from '@pmail/core/address/names.ts';
import { buildReferences } from '@pmail/core/threading/references.ts';
import { prefixedSubject } from '@pmail/core/threading/subject.ts';
import type { Sql } from '../sql.ts';
import type { SendSubject } from './context.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { SubmitRequest } from './submit-types.ts';

/** How a new message names the ones before it (RFC 5322 section 3.6.4), and its subject. */
export interface ThreadHeaders {
  /** Message-IDs without angle brackets. */
  in_reply_to: string | null;
  references: string[];
  subject: string;
}

/**
 * A reply names the message it answers, a threaded send the latest of its thread; a forward only refers. A message whose
 * id nobody knows (its provider never told) cannot be named, so the nearest earlier one that can be stands for it.
 */
export function threadHeaders(sql: Sql, request: SubmitRequest, { target, thread }: SendSubject): ThreadHeaders {
  const given = withoutMarks(request.body.subject ?? '');
  if (request.operation === 'send') {
    const parent = thread === undefined ? undefined : latestNamed(sql, thread.seq);
    return { ...named(parent), subject: given };
  }
  if (target === undefined) throw new Error('a reply without its message');
  const parent = isNamed(target) ? target : latestNamed(sql, target.thread_seq, target);
  const subject = withoutMarks(target.subject ?? '');
  if (request.operation === 'forward') {
    return { in_reply_to: null, references: named(parent).references, subject: prefixedSubject('Fwd', subject) };
  }
  return { ...named(parent), subject: prefixedSubject('Re', subject) };
}

function isNamed(row: MessageRow): boolean {
  return row.rfc_message_id !== null && row.message_id_synthetic === 0;
}

function named(parent: MessageRow | undefined): Pick<ThreadHeaders, 'in_reply_to' | 'references'> {
  const id = parent?.rfc_message_id ?? null;
  if (parent === undefined || id === null) return { in_reply_to: null, references: [] };
  const references = buildReferences({
    id,
    references: parseJson<string[]>(parent.references_json),
    in_reply_to: parent.in_reply_to,
  });
  return { in_reply_to: id, references };
}

/**
 * The newest message of a thread with a known id, before `before` where that is given. Of two at one moment the one that
 * was stored last is the newer: ids are made when a send is asked for, which may be long before it is accepted.
 */
function latestNamed(sql: Sql, threadSeq: number, before?: MessageRow): MessageRow | undefined {
  return sql.first<MessageRow>(
    `SELECT * FROM messages
     WHERE thread_seq = ?1 AND rfc_message_id IS NOT NULL AND message_id_synthetic = 0
       AND status NOT IN ('hidden', 'throttled', 'quarantined') AND (?2 IS NULL OR (received_at, rowid) < (?2, ?3))
     ORDER BY received_at DESC, rowid DESC LIMIT 1`,
    threadSeq,
    before?.received_at ?? null,
    before?.rowid ?? null,
  );
}
