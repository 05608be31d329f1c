import { EVENT_TYPES } from '@pmail/core/events/types.ts';
import { z } from 'zod';
import { idInput } from '../schemas/common.ts';
import { event, eventPage } from '../schemas/event.ts';
import { namesParam, pagination, timeParam } from '../schemas/query.ts';
import { NO_PARAMS, NO_QUERY, params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Events';
const access = { kind: 'key', permissions: ['webhooks:read'] } as const;

export const eventRoutes = {
  'events.list': route({
    method: 'GET',
    path: '/v1/events',
    summary: 'List events',
    description:
      'Events of mail also need `messages:read`, and `message.quarantined` needs `quarantine:review`; others are left ' +
      'out.',
    tag,
    access,
    idempotency: 'none',
    params: NO_PARAMS,
    query: z.strictObject({
      ...pagination,
      tenant_id: idInput('ten', 'Only this tenant; for platform keys.').optional(),
      identity_id: idInput('idn', 'Only this identity.').optional(),
      type: namesParam(EVENT_TYPES, 'Only these types.').optional(),
      after: timeParam('Happened after this time.').optional(),
      before: timeParam('Happened before this time.').optional(),
      include: namesParam(['data'], 'Parts of each event to add.').optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'Latest first.', schema: eventPage }],
    errors: ['tenant_not_found', 'identity_not_found'],
  }),
  'events.get': route({
    method: 'GET',
    path: '/v1/events/{event_id}',
    summary: 'Read an event',
    tag,
    access,
    idempotency: 'none',
    params: params('event_id'),
    query: NO_QUERY,
    body: null,
    success: [{ status: 200, description: 'The event with its data.', schema: event }],
    errors: [],
  }),
};
