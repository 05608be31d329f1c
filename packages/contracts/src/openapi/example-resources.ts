import type { MessageResource, ThreadResource } from '@pmail/core/message/resource.ts';
import { DEFAULT_POLICY } from '@pmail/core/policy/document.ts';
import type { z } from 'zod';
import type { billing } from '../schemas/billing.ts';
import { exampleId } from '../schemas/common.ts';
import type { address, identity } from '../schemas/identity.ts';
import type { apiKey } from '../schemas/key.ts';
import type { sendAnswer } from '../schemas/send.ts';
import type { tenant } from '../schemas/tenant.ts';

/** One of each resource, all about the same little story, for the examples of the document. */

const CREATED = '2026-10-01T08:00:00.000Z';
const SENT = '2026-10-09T10:12:03.412Z';

export const TENANT: z.input<typeof tenant> = {
  id: exampleId('ten'),
  slug: 'acme',
  name: 'Acme Car Hire',
  mode: 'live',
  status: 'active',
  suspended_by: null,
  address_suffix: '.acme',
  timezone: 'Europe/London',
  policy: DEFAULT_POLICY,
  owner: { name: 'Jo Reed', email: 'jo@acme.example' },
  created_at: CREATED,
  updated_at: CREATED,
};

export const BILLING: z.input<typeof billing> = {
  mode: 'metered',
  granted: { inboxes: null, sends: 1000, custom_domains: null, storage_gb: null },
};

export const ADDRESS: z.input<typeof address> = {
  id: exampleId('adr'),
  identity_id: exampleId('idn'),
  address: 'bookings.acme@agents.example',
  local_part: 'bookings.acme',
  domain_id: exampleId('dom'),
  role: 'primary',
  status: 'active',
  retire_at: null,
  retired_at: null,
  forwarding: null,
  forwarding_checked_at: null,
  created_at: CREATED,
};

export const IDENTITY: z.input<typeof identity> = {
  id: exampleId('idn'),
  tenant_id: TENANT.id,
  username: 'bookings',
  display_name: 'Acme Bookings',
  purpose: 'bookings',
  status: 'active',
  pause_reason: null,
  primary_address: ADDRESS.address,
  addresses: [ADDRESS],
  owner: { name: 'Jo Reed', email: 'jo@acme.example' },
  signature: { text: 'Acme Car Hire', html: null },
  send_policy: { daily_cap: 200, auto_reply: 'denied', require_known_recipient: false },
  metadata: { team: 'front desk' },
  client_id: 'agent-17',
  created_at: CREATED,
  updated_at: CREATED,
};

export const KEY: z.input<typeof apiKey> = {
  id: exampleId('key'),
  name: 'booking agent',
  level: 'identity',
  mode: 'live',
  tenant_id: TENANT.id,
  identity_id: IDENTITY.id,
  permissions: ['messages:read', 'messages:send'],
  expires_at: '2026-12-31T23:00:00.000Z',
  revoked_at: null,
  last_used_at: SENT,
  created_by_key_id: null,
  created_at: CREATED,
};

const SAM = { address: 'sam@example.net', name: 'Sam Field' };
const BOOKINGS = { address: ADDRESS.address, name: 'Acme Bookings' };

export const MESSAGE: MessageResource = {
  id: exampleId('msg'),
  thread_id: exampleId('thr'),
  identity_id: IDENTITY.id,
  direction: 'outbound',
  status: 'queued',
  status_reason: null,
  fix: null,
  from: BOOKINGS,
  to: [SAM],
  cc: [],
  bcc: [],
  reply_to: [],
  delivered_to: null,
  is_primary_recipient: null,
  subject: 'Your booking 2291',
  sent_at: SENT,
  received_at: SENT,
  extracted_text: 'Dear Sam,\n\nyour car is ready on Friday from nine.',
  text: null,
  html: null,
  headers: null,
  attachments: [
    {
      id: exampleId('att'),
      filename: 'booking.txt',
      content_type: 'text/plain',
      size: 12,
      disposition: 'attachment',
      content_id: null,
      text_status: 'skipped',
      pages: null,
      risk: null,
    },
  ],
  labels: ['booking:2291'],
  kind: 'transactional',
  read: true,
  operation: 'send',
  trust: null,
  quarantine_reason: null,
  rfc_message_id: null,
  in_reply_to: null,
  provider: null,
  provider_message_id: null,
  deliveries: [
    {
      address: SAM.address,
      field: 'to',
      status: 'queued',
      smtp_code: null,
      enhanced_code: null,
      smtp_response: null,
      bounce_type: null,
      updated_at: SENT,
    },
  ],
  flags: [],
  metadata: { booking: '2291' },
};

export const ACCEPTED: z.input<typeof sendAnswer> = { ...MESSAGE, deduplicated: false };

export const THREAD: ThreadResource = {
  id: MESSAGE.thread_id,
  subject: 'Your booking 2291',
  participants: [BOOKINGS, SAM],
  message_count: 1,
  unread_count: 0,
  first_at: SENT,
  last_at: SENT,
  last_inbound_at: null,
  last_direction: 'outbound',
  snippet: 'Dear Sam, your car is ready on Friday from nine.',
  labels: ['booking:2291'],
  archived: false,
};
