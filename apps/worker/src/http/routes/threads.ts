import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import type { ThreadId } from '@pmail/core/ids.ts';
import { ok, refuse } from '@pmail/core/result.ts';
import { mailboxCall, mailboxOf, type RequestContext } from '../context.ts';
import { readCursor, writeCursor } from '../cursor.ts';
import { withHeaders } from '../message-headers.ts';
import { object } from '../object-call.ts';

type Group = { [K in Extract<RouteId, `threads.${string}`>]: RouteHandler<K, RequestContext> };

export const threadHandlers: Group = {
  'threads.list': async (context, { params, query }) => {
    const cursor = await readCursor(context, 'threads.list', { params, query });
    if (!cursor.ok) return cursor;
    const { limit, label, is_unread, direction, archived, after, before } = query;
    const page = await object(
      mailboxOf(context, context.identity).listThreads(
        mailboxCall(context, context.identity),
        { label, is_unread, direction, archived, after, before },
        limit,
        cursor.value,
      ),
    );
    const next = await writeCursor(context, 'threads.list', { params, query }, page.next);
    return ok({ status: 200 as const, body: { data: page.items, next_cursor: next } });
  },

  'threads.get': async (context, { params, query }) => {
    const cursor = await readCursor(context, 'threads.get', { params, query });
    if (!cursor.ok) return cursor;
    const include = query.include ?? [];
    const found = await object(
      mailboxOf(context, context.identity).getThread(
        mailboxCall(context, context.identity),
        params.thread_id as ThreadId,
        query.messages_limit,
        cursor.value,
        { text: include.includes('quoted'), html: include.includes('html') },
      ),
    );
    if (found === undefined) return refuse('thread_not_found');
    const next = await writeCursor(context, 'threads.get', { params, query }, found.messages.next);
    const { items } = found.messages;
    const messages = include.includes('headers') ? await withHeaders(context, items) : items;
    return ok({ status: 200 as const, body: { ...found.thread, messages, next_cursor: next } });
  },
};
