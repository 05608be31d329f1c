import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { idInput, label } from '../schemas/common.ts';
import {
  DIRECTIONS,
  MESSAGE_PARTS,
  MESSAGE_STATUSES,
  message,
  messagePage,
  patchMessageBody,
  resolveBody,
} from '../schemas/message.ts';
import { namesParam, pagination, timeParam } from '../schemas/query.ts';
import { NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Messages';
const read = { kind: 'key', permissions: ['messages:read'] } as const;

export const messageRoutes = {
  'messages.list': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/messages',
    summary: 'List messages',
    description:
      'Held mail (quarantined, throttled, hidden) shows only with that `status` and the permission ' +
      '`quarantine:review`.',
    tag,
    access: read,
    idempotency: 'none',
    params: params('identity_id'),
    query: z.strictObject({
      ...pagination,
      thread_id: idInput('thr', 'Only messages of this thread.').optional(),
      direction: z.enum(DIRECTIONS).optional(),
      status: z.enum(MESSAGE_STATUSES).optional(),
      label: label.optional(),
      after: timeParam('Received after this time.').optional(),
      before: timeParam('Received before this time.').optional(),
      q: z
        .string()
        .min(1)
        .max(BOUNDS.search_chars_max)
        .optional()
        .meta({ description: 'Words that must all occur in subject, participants, text or file names.' }),
    }),
    body: null,
    success: [{ status: 200, description: 'Latest first.', schema: messagePage }],
    errors: [],
  }),
  'messages.get': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/messages/{message_id}',
    summary: 'Read a message',
    tag,
    access: read,
    idempotency: 'none',
    params: params('identity_id', 'message_id'),
    query: z.strictObject({ include: namesParam(MESSAGE_PARTS, 'Parts to add.').optional() }),
    body: null,
    success: [{ status: 200, description: 'The message.', schema: message }],
    errors: [],
  }),
  'messages.update': route({
    method: 'PATCH',
    path: '/v1/identities/{identity_id}/messages/{message_id}',
    summary: 'Label a message or mark it read',
    tag,
    access: { kind: 'key', permissions: ['messages:write'] },
    idempotency: 'none',
    params: params('identity_id', 'message_id'),
    query: NO_QUERY,
    body: patchMessageBody,
    success: [{ status: 200, description: 'The message as it is now.', schema: message }],
    errors: [],
  }),
  'messages.cancel': route({
    method: 'POST',
    path: '/v1/identities/{identity_id}/messages/{message_id}/cancel',
    summary: 'Cancel a message',
    description: 'Works while the message is queued and no transport has taken it.',
    tag,
    access: { kind: 'key', permissions: ['messages:send'] },
    idempotency: 'optional',
    params: params('identity_id', 'message_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The cancelled message.', schema: message }],
    errors: ['not_cancelable'],
  }),
  'messages.resolve': route({
    method: 'POST',
    path: '/v1/identities/{identity_id}/messages/{message_id}/resolve',
    summary: 'Say what became of an uncertain message',
    description:
      'A message is uncertain when the transport gave no clear answer; it is never sent again by itself. After ' +
      '`not_sent` you may send it again with a new Idempotency-Key.',
    tag,
    access: { kind: 'key', permissions: ['messages:write'] },
    idempotency: 'optional',
    params: params('identity_id', 'message_id'),
    query: NO_QUERY,
    body: resolveBody,
    success: [{ status: 200, description: 'The message as it is now.', schema: message }],
    errors: ['not_uncertain'],
  }),
  'messages.raw.get': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/messages/{message_id}/raw',
    summary: 'Download the raw message',
    description: 'Untrusted bytes as they were sent or received.',
    tag,
    access: read,
    idempotency: 'none',
    params: params('identity_id', 'message_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The message in MIME.', schema: null, contentType: 'message/rfc822' }],
    errors: ['raw_expired'],
  }),
  'messages.attachments.get': route({
    method: 'GET',
    path: '/v1/identities/{identity_id}/messages/{message_id}/attachments/{attachment_id}',
    summary: 'Download an attachment',
    description: 'A file with a risk also needs `quarantine:review`.',
    tag,
    access: { kind: 'key', permissions: ['attachments:read'] },
    idempotency: 'none',
    params: params('identity_id', 'message_id', 'attachment_id'),
    query: NO_QUERY,
    body: null,
    success: [
      {
        status: 200,
        description: 'The file, under its own type where that is harmless, else as application/octet-stream.',
        schema: null,
        contentType: '*/*',
      },
    ],
    errors: [],
  }),
};
