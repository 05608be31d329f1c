import type { ErrorCode } from '@pmail/core/errors.ts';
import type { SendOperation } from '@pmail/core/message/request.ts';
import { z } from 'zod';
import { switchParam } from '../schemas/query.ts';
import { dryRunAnswer, forwardBody, replyBody, sendAnswer, sendBody } from '../schemas/send.ts';
import { params } from './params.ts';
import { route } from './spec.ts';

/** The four ways to send. They differ in where the recipients come from; key, checks and answer are the same. */

const common = {
  method: 'POST',
  tag: 'Messages',
  access: { kind: 'key', permissions: ['messages:send'] },
  idempotency: 'required',
  query: z.strictObject({ dry_run: switchParam('Check only; nothing is stored or sent.').optional() }),
  success: [
    { status: 202, description: 'Accepted, now or by an earlier request with this key.', schema: sendAnswer },
    { status: 200, description: 'The dry run passed.', schema: dryRunAnswer },
  ],
} as const;

const refusals = [
  'tenant_suspended',
  'identity_paused',
  'identity_owner_required',
  'address_invalid',
  'address_unsupported',
  'too_many_recipients',
  'test_mode_recipient',
  'marketing_requirements_missing',
  'auto_reply_not_allowed',
  'header_not_allowed',
  'loop_detected',
  'domain_not_ready',
  'transport_unavailable',
  'all_recipients_suppressed',
  'recipient_blocked',
  'message_too_large',
  'billing_limit',
  'daily_cap_reached',
  'thread_busy',
] as const satisfies ErrorCode[];

/** A stored address is valid, so a reply has no recipient that could be refused for its form. */
const replyRefusals = refusals.filter((code) => code !== 'address_invalid' && code !== 'address_unsupported');

/** A forward is always transactional. */
const forwardRefusals = refusals.filter(
  (code) => code !== 'marketing_requirements_missing' && code !== 'auto_reply_not_allowed',
);

export const sendRoutes = {
  'messages.send': route({
    ...common,
    path: '/v1/identities/{identity_id}/messages',
    summary: 'Send a message',
    description:
      'Accepts a message and sends it soon after. One Idempotency-Key makes at most one email, however often the ' +
      'request is repeated: the answer to a repetition is the first one, with `deduplicated` true. With ' +
      '`dry_run=true` every check runs and nothing is stored or sent.',
    params: params('identity_id'),
    body: sendBody,
    errors: [...refusals, 'thread_not_found'],
  }),
  'messages.reply': route({
    ...common,
    path: '/v1/identities/{identity_id}/messages/{message_id}/reply',
    summary: 'Reply to the sender',
    description:
      'Answers in the thread of the message. A Reply-To address is followed only where it is known or of the same ' +
      'organisation; otherwise the answer goes to From. A reply to a sent message goes to its To and Cc again.',
    params: params('identity_id', 'message_id'),
    body: replyBody,
    errors: replyRefusals,
  }),
  'messages.reply_all': route({
    ...common,
    path: '/v1/identities/{identity_id}/messages/{message_id}/reply-all',
    summary: 'Reply to everyone',
    description:
      'Like a reply, and to the other people in To and Cc. The addresses of this identity are left out, and whoever ' +
      'got a blind copy is not shown.',
    params: params('identity_id', 'message_id'),
    body: replyBody,
    errors: replyRefusals,
  }),
  'messages.forward': route({
    ...common,
    path: '/v1/identities/{identity_id}/messages/{message_id}/forward',
    summary: 'Forward a message',
    description:
      'Sends the message on, under your own text, with its files attached again. Files with a risk stay behind.',
    params: params('identity_id', 'message_id'),
    body: forwardBody,
    errors: forwardRefusals,
  }),
};

/** Which operation a route is, for what treats all four alike. */
export const SEND_ROUTES = {
  'messages.send': 'send',
  'messages.reply': 'reply',
  'messages.reply_all': 'reply_all',
  'messages.forward': 'forward',
} as const satisfies Record<keyof typeof sendRoutes, SendOperation>;
