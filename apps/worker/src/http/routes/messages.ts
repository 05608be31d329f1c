import type { SEND_ROUTES } from '@pmail/contracts/routes/sends.ts';
import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import { type AttachmentId, type MessageId, parseId } from '@pmail/core/ids.ts';
import { ok, refuse } from '@pmail/core/result.ts';
import { auditStatement } from '@pmail/engine/directory/audit.ts';
import { auditEntry } from '../audit.ts';
import { canReview, mailboxCall, mailboxOf, type RequestContext } from '../context.ts';
import { readCursor, writeCursor } from '../cursor.ts';
import { downloadHeaders } from '../download.ts';
import { readHeaders } from '../message-headers.ts';
import { object } from '../object-call.ts';

type Group = {
  [K in Exclude<Extract<RouteId, `messages.${string}`>, keyof typeof SEND_ROUTES>]: RouteHandler<K, RequestContext>;
};

/** Identities on their way out can be read, not used. */
export function writable(context: RequestContext): ReturnType<typeof refuse> | null {
  const { status } = context.identity;
  return status === 'deleting' || status === 'deleted' ? refuse('identity_not_found') : null;
}

export const messageHandlers: Group = {
  'messages.list': async (context, { params, query }) => {
    const { limit, status, thread_id, direction, label, after, before, q } = query;
    const cursor = await readCursor(context, 'messages.list', { params, query });
    if (!cursor.ok) return cursor;
    const threadId = thread_id === undefined ? undefined : parseId('thr', thread_id);
    // A malformed thread id names no thread, and no thread has no messages.
    if (thread_id !== undefined && threadId === undefined)
      return ok({ status: 200 as const, body: { data: [], next_cursor: null } });
    const page = await object(
      mailboxOf(context, context.identity).listMessages(
        mailboxCall(context, context.identity),
        { thread_id: threadId, status, direction, label, after, before, q },
        limit,
        cursor.value,
        canReview(context),
      ),
    );
    const next = await writeCursor(context, 'messages.list', { params, query }, page.next);
    return ok({ status: 200 as const, body: { data: page.items, next_cursor: next } });
  },

  'messages.get': async (context, { params, query }) => {
    const include = query.include ?? [];
    const message = await object(
      mailboxOf(context, context.identity).getMessage(
        mailboxCall(context, context.identity),
        params.message_id as MessageId,
        { text: include.includes('quoted'), html: include.includes('html') },
        canReview(context),
      ),
    );
    if (message === undefined) return refuse('message_not_found');
    if (!include.includes('headers')) return ok({ status: 200 as const, body: message });
    const headers = await readHeaders(context, message.id);
    return ok({ status: 200 as const, body: { ...message, headers } });
  },

  'messages.update': async (context, { params, body }) => {
    const gone = writable(context);
    if (gone !== null) return gone;
    const result = await object(
      mailboxOf(context, context.identity).updateMessage(
        mailboxCall(context, context.identity),
        params.message_id as MessageId,
        body,
      ),
    );
    return result.ok ? ok({ status: 200 as const, body: result.message }) : result;
  },

  'messages.cancel': async (context, { params }) => {
    const gone = writable(context);
    if (gone !== null) return gone;
    const id = params.message_id as MessageId;
    const result = await object(
      mailboxOf(context, context.identity).cancel(mailboxCall(context, context.identity), id),
    );
    return result.ok ? ok({ status: 200 as const, body: result.message }) : result;
  },

  'messages.resolve': async (context, { params, body }) => {
    const gone = writable(context);
    if (gone !== null) return gone;
    return resolveMessage(context, params.message_id as MessageId, body.outcome);
  },

  'messages.raw.get': async (context, { params }) => {
    const stub = mailboxOf(context, context.identity);
    const id = params.message_id as MessageId;
    const key = await object(stub.rawLocation(mailboxCall(context, context.identity), id, canReview(context)));
    if (key === undefined) return refuse('message_not_found');
    const stored = key === null ? null : await context.env.BLOBS.get(key);
    if (stored === null) return refuse('raw_expired');
    return ok({
      status: 200 as const,
      body: stored.body,
      headers: {
        ...downloadHeaders({ filename: `${id}.eml`, contentType: 'message/rfc822', size: stored.size }),
        // Whoever asks for the raw message asks for one; a file that is one comes as bytes.
        'content-type': 'message/rfc822',
      },
    });
  },

  'messages.attachments.get': async (context, { params }) => {
    const stub = mailboxOf(context, context.identity);
    const call = mailboxCall(context, context.identity);
    const id = params.message_id as MessageId;
    const review = canReview(context);
    const found = await object(stub.attachmentLocation(call, id, params.attachment_id as AttachmentId, review));
    if (found === undefined) {
      const message = await object(stub.rawLocation(call, id, review));
      return refuse(message === undefined ? 'message_not_found' : 'attachment_not_found');
    }
    if (found.risk !== null && !review) return refuse('attachment_not_found');
    const stored = await context.env.BLOBS.get(found.r2_key);
    if (stored === null) {
      // Bytes of arrived mail follow its row; shortly after it they may still be on their way.
      const fresh = context.now - found.received_at < FRESH_MS;
      return fresh ? refuse('unavailable', { step: 'attachment' }) : refuse('attachment_not_found');
    }
    const { filename, content_type: contentType } = found;
    return ok({
      status: 200 as const,
      body: stored.body,
      headers: downloadHeaders({ filename: filename ?? 'attachment', contentType, size: stored.size }),
    });
  },
};

const FRESH_MS = 5 * 60_000;

/**
 * The mailbox changes the message and the directory keeps the log, so one of the two comes first. That is the entry: a
 * change is never without one, whatever is lost after it. An attempt that the mailbox refused gets a second entry.
 */
async function resolveMessage(
  context: RequestContext,
  id: MessageId,
  outcome: 'sent' | 'not_sent',
): ReturnType<Group['messages.resolve']> {
  const mailbox = mailboxOf(context, context.identity);
  const call = mailboxCall(context, context.identity);
  // What is no message is not worth an entry.
  const seen = await object(mailbox.getMessage(call, id, { text: false, html: false }, true));
  if (seen === undefined) return refuse('message_not_found');
  const target = { tenant_id: context.identity.tenant_id, target_type: 'message', target_id: id };
  const asked = auditEntry(context, 'message.resolve', target, { outcome });
  await context.db.batch([auditStatement(asked)]);
  const result = await object(mailbox.resolve(call, id, outcome));
  if (result.ok) return ok({ status: 200 as const, body: result.message });
  const details = { outcome, code: result.code, refused: asked.id };
  await context.db.batch([auditStatement(auditEntry(context, 'message.resolve_refused', target, details))]);
  return result;
}
