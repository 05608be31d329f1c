import type { z } from 'zod';
import { exampleId } from '../schemas/common.ts';
import type { webhook, webhookDelivery } from '../schemas/webhook.ts';

export const WEBHOOK: z.input<typeof webhook> = {
  id: exampleId('whk'),
  scope: 'tenant',
  tenant_id: exampleId('ten'),
  url: 'https://hooks.acme.com/pmail',
  events: ['message.received', 'message.bounced'],
  identity_ids: [exampleId('idn')],
  description: 'booking agent',
  enabled: true,
  disabled_reason: null,
  created_at: '2026-10-01T08:00:00.000Z',
  updated_at: '2026-10-01T08:00:00.000Z',
};

export const WEBHOOK_DELIVERY: z.input<typeof webhookDelivery> = {
  id: exampleId('dlv'),
  webhook_id: WEBHOOK.id,
  event_id: exampleId('evt'),
  event_type: 'message.bounced',
  attempt: 2,
  status: 'failed',
  http_status: 503,
  error: 'status_5xx',
  duration_ms: 412,
  next_attempt_at: '2026-10-09T10:14:05.000Z',
  created_at: '2026-10-09T10:12:05.000Z',
};
