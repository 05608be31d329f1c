import { EVENT_TYPES } from '@pmail/core/events/types.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { WEBHOOK_ERRORS } from '@pmail/core/webhooks/outcome.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { id, idInput, line, list, page, time, timeInput } from './common.ts';

const url = z.string().meta({
  description:
    'https URL of a public name, port 443 or from 1024 on, without user name and fragment. Its addresses are looked at ' +
    'now and at every attempt; one that is private refuses it.',
});
const events = list(
  z.enum(['*', ...EVENT_TYPES]),
  EVENT_TYPES.length + 1,
  1,
  'Types to be told of, or `*` for all. Types of mail need `messages:read`, and `*` and `message.quarantined` need ' +
    '`quarantine:review` too.',
);
const identityIds = list(
  idInput('idn'),
  LIMITS.webhook_identity_ids_max,
  1,
  'Only events of these identities. Events of no identity are then left out.',
).nullable();
const description = line(BOUNDS.webhook_description_chars_max, 'Text for people.').nullable();

export const createWebhookBody = z
  .strictObject({
    url,
    events,
    identity_ids: identityIds.optional(),
    description: description.optional(),
  })
  .meta({ id: 'CreateWebhookRequest' });

export const updateWebhookBody = z
  .strictObject({
    url: url.optional(),
    events: events.optional(),
    identity_ids: identityIds.optional(),
    description: description.optional(),
    enabled: z.boolean().optional().meta({ description: 'Switching on forgets earlier failures.' }),
  })
  .meta({ id: 'UpdateWebhookRequest', description: 'Only the fields that change.' });

export const rotateWebhookBody = z
  .strictObject({
    overlap_hours: z
      .int()
      .min(0)
      .max(LIMITS.key_overlap_hours_max)
      .default(BOUNDS.key_overlap_hours_default)
      .meta({ description: 'How long deliveries carry the signature of the old secret too.' }),
  })
  .meta({ id: 'RotateWebhookSecretRequest' });

export const webhook = z
  .object({
    id: id('whk'),
    scope: z.enum(['platform', 'tenant']),
    tenant_id: id('ten').nullable(),
    url: z.string(),
    events: z.array(z.string()),
    identity_ids: z.array(id('idn')).nullable(),
    description: z.string().nullable(),
    enabled: z.boolean(),
    disabled_reason: z.enum(['manual', 'failing', 'url_changed']).nullable().meta({
      description: '`url_changed` until a test was answered with 2xx; `manual` until somebody switches it on.',
    }),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Webhook' });

export const webhookWithSecret = webhook
  .extend({
    secret: z.string().optional().meta({ description: 'Verifies deliveries (Standard Webhooks); shown this once.' }),
    secret_replayed: z
      .literal(false)
      .optional()
      .meta({ description: 'Stands for the secret in the replay of an earlier request.' }),
  })
  .meta({ id: 'WebhookWithSecret' });

export const webhookPage = page('WebhookPage', webhook);

export const DELIVERY_ATTEMPT_STATUSES = ['succeeded', 'failed', 'dead'] as const;

export const webhookDelivery = z
  .object({
    id: id('dlv'),
    webhook_id: id('whk'),
    event_id: id('evt'),
    event_type: z.enum(EVENT_TYPES),
    attempt: z.int().min(1),
    status: z
      .enum(DELIVERY_ATTEMPT_STATUSES)
      .meta({ description: '`failed` is tried again at `next_attempt_at`; `dead` is not, but can be replayed.' }),
    http_status: z.int().nullable(),
    error: z.enum(WEBHOOK_ERRORS).nullable(),
    duration_ms: z.int().nullable(),
    next_attempt_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'WebhookDelivery', description: 'One attempt.' });

export const webhookDeliveryPage = page('WebhookDeliveryPage', webhookDelivery);

export const replayWebhookBody = z
  .strictObject({
    event_ids: list(idInput('evt'), BOUNDS.replay_event_ids_max, 1, 'These events.').optional(),
    since: timeInput.optional(),
    until: timeInput.optional(),
    status: z
      .enum(DELIVERY_ATTEMPT_STATUSES)
      .optional()
      .meta({ description: 'Only events whose last attempt at this endpoint ended so.' }),
  })
  .superRefine((body, context) => {
    const add = (field: string, message: string): void => context.addIssue({ code: 'custom', message, path: [field] });
    if (body.event_ids === undefined && body.since === undefined) add('event_ids', 'or since is required');
    if (body.event_ids === undefined) return;
    for (const field of ['since', 'until', 'status'] as const) {
      if (body[field] !== undefined) add(field, 'must be absent beside event_ids');
    }
  })
  .meta({
    id: 'ReplayWebhookRequest',
    description: `Either some events, or those from \`since\` on, at most ${LIMITS.webhook_replay_events_max}, the oldest first.`,
  });

export const replayAnswer = z
  .object({ queued: z.int().min(0).meta({ description: 'Events that will be delivered again.' }) })
  .meta({ id: 'WebhookReplay' });
