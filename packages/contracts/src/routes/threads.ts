import { LIMITS } from '@pmail/core/limits.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { label } from '../schemas/common.ts';
import { DIRECTIONS, MESSAGE_PARTS } from '../schemas/message.ts';
import { countParam, namesParam, pagination, switchParam, timeParam } from '../schemas/query.ts';
import { threadPage, threadWithMessages } from '../schemas/thread.ts';
import { params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Threads';
const access = { kind: 'key', permissions: ['messages:read'] } as const;

export const threadRoutes = {
  'threads.list': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/threads',
    summary: 'List threads',
    tag,
    access,
    idempotency: 'none',
    params: params('identity_id'),
    query: z.strictObject({
      ...pagination,
      label: label.optional(),
      is_unread: switchParam('Threads with unread messages, or without.').optional(),
      direction: z.enum(DIRECTIONS).optional().meta({ description: 'Direction of the latest message.' }),
      archived: switchParam('Archived threads instead of the others; false unless given.').default(false),
      after: timeParam('Latest message after this time.').optional(),
      before: timeParam('Latest message before this time.').optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'Latest message first.', schema: threadPage }],
    errors: [],
  }),
  'threads.get': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/threads/{thread_id}',
    summary: 'Read a thread with its messages',
    tag,
    access,
    idempotency: 'none',
    params: params('identity_id', 'thread_id'),
    query: z.strictObject({
      messages_limit: countParam(1, LIMITS.page_size_max, BOUNDS.thread_messages_default, 'Messages of a page.'),
      cursor: pagination.cursor,
      include: namesParam(MESSAGE_PARTS, 'Parts of each message to add.').optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'The thread, messages oldest first.', schema: threadWithMessages }],
    errors: [],
  }),
};
