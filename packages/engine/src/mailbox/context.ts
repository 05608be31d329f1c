import type { Address, Mailbox } from '@pmail/core/address/address.ts';
import { parseId, type ThreadId } from '@pmail/core/ids.ts';
import { planRecipients } from '@pmail/core/policy/recipients.ts';
import type { SendContext, TargetFacts, ThreadFacts } from '@pmail/core/policy/types.ts';
import type { Sql } from '../sql.ts';
import { hasWrittenTo, isKnownContact } from './contacts.ts';
import { findMessage } from './messages.ts';
import { type MessageRow, parseJson } from './rows.ts';
import type { SubmitRequest } from './submit-types.ts';
import { findThread, type ThreadRow, threadBySeq } from './threads.ts';

/** The message and thread a send is about, as rows; the policy sees only the facts taken from them. */
export interface SendSubject {
  context: SendContext;
  target: MessageRow | undefined;
  thread: ThreadRow | undefined;
}

/** Recipients that the directory has not been asked about. Whatever else is wrong with the send is for the policy to say. */
export function notAskedAbout(context: SendContext): Address[] {
  const planned = planRecipients(context);
  if (!planned.ok) return [];
  const asked = new Set(context.directory.checked);
  return planned.value.map(({ address }) => address).filter((address) => !asked.has(address));
}

/** Gathers what the policy may look at. Reads only. */
export function sendContext(sql: Sql, request: SubmitRequest, now: number): SendSubject {
  const target = request.target_id === null ? undefined : findMessage(sql, request.target_id);
  const thread =
    target === undefined
      ? findThreadById(sql, request.operation === 'send' ? request.body.thread_id : undefined)
      : threadBySeq(sql, target.thread_seq);
  const context: SendContext = {
    now,
    operation: request.operation,
    body: request.body,
    directory: request.directory,
    can_review_quarantine: request.can_review_quarantine,
    target: target === undefined ? null : targetFacts(target),
    thread: thread === undefined ? null : threadFacts(sql, thread),
    is_known_contact: (address) => isKnownContact(sql, address),
    has_written_to: (address) => hasWrittenTo(sql, address),
  };
  return { context, target, thread };
}

function findThreadById(sql: Sql, id: string | undefined): ThreadRow | undefined {
  const threadId: ThreadId | undefined = id === undefined ? undefined : parseId('thr', id);
  return threadId === undefined ? undefined : findThread(sql, threadId);
}

function targetFacts(row: MessageRow): TargetFacts {
  return {
    id: row.id,
    direction: row.direction,
    status: row.status,
    kind: row.kind,
    from: row.from_address === null ? null : { address: row.from_address, name: row.from_name ?? '' },
    reply_to: parseJson<Mailbox[]>(row.reply_to_json),
    to: parseJson<Mailbox[]>(row.to_json),
    cc: parseJson<Mailbox[]>(row.cc_json),
    known_sender: row.known_sender === 1,
    hop: row.hop,
  };
}

function threadFacts(sql: Sql, thread: ThreadRow): ThreadFacts {
  const usedFrom = sql.all<{ from_address: string }>(
    "SELECT DISTINCT from_address FROM messages WHERE thread_seq = ? AND direction = 'outbound' AND from_address IS NOT NULL",
    thread.seq,
  );
  const hop = sql.first<{ hop: number }>(
    "SELECT hop FROM messages WHERE thread_seq = ? AND direction = 'inbound' ORDER BY received_at DESC, id DESC LIMIT 1",
    thread.seq,
  );
  return {
    seq: thread.seq,
    id: thread.id,
    reply_from_address: thread.reply_from_address,
    fallback_pinned: thread.fallback_pinned === 1,
    last_at: thread.last_at,
    used_from: usedFrom.map(({ from_address }) => from_address),
    automatic_exchanges: automaticExchanges(sql, thread.seq),
    hop: hop?.hop ?? 0,
  };
}

/** Automatic replies in the thread since the last message that a person had us send. */
function automaticExchanges(sql: Sql, threadSeq: number): number {
  const row = sql.first<{ n: number }>(
    `SELECT COUNT(*) AS n FROM messages
     WHERE thread_seq = ?1 AND direction = 'outbound' AND kind = 'auto_reply'
       AND status NOT IN ('canceled', 'rejected', 'failed', 'suppressed')
       AND rowid > COALESCE((SELECT MAX(rowid) FROM messages
                             WHERE thread_seq = ?1 AND direction = 'outbound' AND kind <> 'auto_reply'), 0)`,
    threadSeq,
  );
  return row?.n ?? 0;
}
