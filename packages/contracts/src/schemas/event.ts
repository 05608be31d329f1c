import { EVENT_API_VERSION, EVENT_TYPES, type EventEnvelope } from '@pmail/core/events/types.ts';
import { z } from 'zod';
import { id, page, time } from './common.ts';

const data = z.record(z.string(), z.unknown()).meta({ description: 'Depends on the type.' });

export const event = z
  .object({
    id: id('evt'),
    type: z.enum(EVENT_TYPES).meta({ description: 'More may be added.' }),
    api_version: z.literal(EVENT_API_VERSION),
    occurred_at: time,
    tenant_id: id('ten').nullable(),
    identity_id: id('idn').nullable(),
    sequence: z
      .int()
      .nullable()
      .meta({ description: 'Rises strictly within one mailbox, domain or job; null for events of the platform.' }),
    data,
  })
  .meta({ id: 'Event' }) satisfies z.ZodType<EventEnvelope>;

/** Rows of a list leave out `data` unless it was asked for. */
export const eventPage = page(
  'EventPage',
  event.extend({ data: data.optional().meta({ description: 'Only with `include=data`.' }) }).meta({ id: 'EventRow' }),
);
