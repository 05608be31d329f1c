import { DEFAULT_POLICY } from '@pmail/core/policy/document.ts';
import type { z } from 'zod';
import type { ROUTES, RouteAnswer, RouteId } from '../routes.ts';
import { exampleId } from '../schemas/common.ts';
import { LEDGER_REBUILD } from '../schemas/ledger-rebuild.ts';
import { ACCEPTED, ADDRESS, BILLING, IDENTITY, KEY, MESSAGE, TENANT, THREAD } from './example-resources.ts';
import { LIST_ENTRY, MANUAL_SUPPRESSION, SUPPRESSION } from './example-suppressions.ts';
import { WEBHOOK, WEBHOOK_DELIVERY } from './example-webhooks.ts';

type BodyExample<K extends RouteId> = (typeof ROUTES)[K]['body'] extends infer B extends z.ZodType ? z.input<B> : never;

type AnswerExamples<K extends RouteId> = {
  [N in RouteAnswer<K>['status'] & number]?: Extract<RouteAnswer<K>, { status: N }>['body'];
};

/** Examples of bodies and answers, checked by the compiler and, in a test, by the schemas themselves. */
type Examples = { [K in RouteId]?: { body?: BodyExample<K>; answers?: AnswerExamples<K> } };

const NEXT_CURSOR = 'c_1eyJ2IjoxLCJyIjoibWVzc2FnZXMifQ';

const TYPED = {
  'health.get': {
    answers: { 200: { status: 'ok', version: '0.1.0', commit: 'a1b2c3d', env: 'production', ses_region: 'eu-west-1' } },
  },
  'me.get': {
    answers: {
      200: {
        key_id: KEY.id,
        name: KEY.name,
        level: KEY.level,
        mode: KEY.mode,
        tenant_id: KEY.tenant_id,
        identity_id: KEY.identity_id,
        permissions: KEY.permissions,
        expires_at: KEY.expires_at,
      },
    },
  },
  'tenants.create': {
    body: { slug: 'acme', name: 'Acme Car Hire', mode: 'live', timezone: 'Europe/London' },
    answers: { 201: TENANT },
  },
  'tenants.list': { answers: { 200: { data: [TENANT], next_cursor: null } } },
  'tenants.get': { answers: { 200: TENANT } },
  'tenants.update': { body: { status: 'suspended' }, answers: { 200: { ...TENANT, status: 'suspended' } } },
  'tenants.policy.get': {
    answers: {
      200: {
        tenant_id: TENANT.id,
        policy_version: 1,
        policy: DEFAULT_POLICY,
        fields: [
          {
            field: 'identity_daily_send_cap',
            class: 'lower',
            writable: true,
            ceiling: 500,
            ceiling_source: 'deployment',
          },
        ],
      },
    },
  },
  'tenants.policy.update': {
    body: { policy: { max_recipients: 5, ai_disclosure: { mode: 'footer' }, retention: { message_days: null } } },
  },
  'tenants.billing.get': { answers: { 200: BILLING } },
  'tenants.billing.update': {
    body: { mode: 'metered', granted: { sends: 1000, storage_gb: null } },
    answers: { 200: BILLING },
  },
  'keys.create': {
    body: {
      name: 'booking agent',
      level: 'identity',
      tenant_id: TENANT.id,
      identity_id: IDENTITY.id,
      permissions: ['messages:read', 'messages:send'],
      expires_at: '2027-01-01T00:00:00+01:00',
    },
    answers: { 201: { ...KEY, secret: 'pmk_live_7f3k9m2pq4xw_the-rest-is-shown-once' } },
  },
  'keys.list': { answers: { 200: { data: [KEY], next_cursor: null } } },
  'keys.get': { answers: { 200: KEY } },
  'keys.rotate': {
    body: { overlap_hours: 24 },
    answers: { 200: { ...KEY, secret: 'pmk_live_7f3k9m2pq4xw_the-rest-is-shown-once' } },
  },
  'identities.create': {
    body: {
      username: 'bookings',
      display_name: 'Acme Bookings',
      purpose: 'bookings',
      client_id: 'agent-17',
      owner: { name: 'Jo Reed', email: 'jo@acme.example' },
      signature: { text: 'Acme Car Hire' },
      send_policy: { daily_cap: 200, auto_reply: 'denied' },
      metadata: { team: 'front desk' },
    },
    answers: { 201: IDENTITY },
  },
  'identities.list': { answers: { 200: { data: [IDENTITY], next_cursor: null } } },
  'identities.get': { answers: { 200: IDENTITY } },
  'identities.update': {
    body: { status: 'paused' },
    answers: { 200: { ...IDENTITY, status: 'paused', pause_reason: 'manual' } },
  },
  'identities.addresses.list': { answers: { 200: { data: [ADDRESS], next_cursor: null } } },
  'webhooks.createOfTenant': {
    body: {
      url: 'https://hooks.acme.com/pmail',
      events: ['message.received', 'message.bounced'],
      identity_ids: [IDENTITY.id],
      description: 'booking agent',
    },
    answers: { 201: { ...WEBHOOK, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw-example' } },
  },
  'webhooks.create': { body: { url: 'https://hooks.acme.com/all', events: ['*'] } },
  'webhooks.list': { answers: { 200: { data: [WEBHOOK], next_cursor: null } } },
  'webhooks.listOfTenant': { answers: { 200: { data: [WEBHOOK], next_cursor: null } } },
  'webhooks.get': { answers: { 200: WEBHOOK } },
  'webhooks.update': {
    body: { url: 'https://hooks.acme.com/v2' },
    answers: {
      200: { ...WEBHOOK, url: 'https://hooks.acme.com/v2', enabled: false, disabled_reason: 'url_changed' },
    },
  },
  'webhooks.rotateSecret': {
    body: { overlap_hours: 24 },
    answers: { 200: { ...WEBHOOK, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw-example' } },
  },
  'webhooks.test': { answers: { 200: WEBHOOK_DELIVERY } },
  'webhooks.deliveries.list': { answers: { 200: { data: [WEBHOOK_DELIVERY], next_cursor: null } } },
  'webhooks.replay': { body: { event_ids: [WEBHOOK_DELIVERY.event_id] }, answers: { 202: { queued: 1 } } },
  'suppressions.list': { answers: { 200: { data: [SUPPRESSION], next_cursor: null } } },
  'suppressions.create': {
    body: { address: 'sam@example.net', reason: 'manual', note: 'asked by phone' },
    answers: { 201: MANUAL_SUPPRESSION, 200: SUPPRESSION },
  },
  'suppressions.delete': { body: { confirm_complaint_removal: true } },
  'lists.list': { answers: { 200: { data: [LIST_ENTRY], next_cursor: null } } },
  'lists.get': { answers: { 200: LIST_ENTRY } },
  'lists.put': { body: { note: 'a competitor' }, answers: { 201: LIST_ENTRY, 200: LIST_ENTRY } },
  'messages.send': {
    body: {
      to: [{ address: 'sam@example.net', name: 'Sam Field' }],
      cc: ['desk@example.net'],
      subject: 'Your booking 2291',
      text: 'Dear Sam,\n\nyour car is ready on Friday from nine.',
      attachments: [{ filename: 'booking.txt', content_type: 'text/plain', content_base64: 'Qm9va2luZyAyMjkx' }],
      labels: ['booking:2291'],
      metadata: { booking: '2291' },
    },
    answers: {
      202: ACCEPTED,
      200: {
        would_send: true,
        recipients: [
          { address: 'sam@example.net', field: 'to', status: 'queued', reason: null },
          { address: 'desk@example.net', field: 'cc', status: 'suppressed', reason: 'hard_bounce' },
        ],
      },
    },
  },
  'messages.reply': {
    body: { text: 'Dear Sam,\n\nFriday from nine it is.' },
    answers: { 202: { ...ACCEPTED, operation: 'reply' } },
  },
  'messages.reply_all': {
    body: { html: '<p>Friday from nine it is.</p>', labels: ['booking:2291'] },
    answers: { 202: { ...ACCEPTED, operation: 'reply_all' } },
  },
  'messages.forward': {
    body: { to: ['garage@example.net'], text: 'Please have it ready.', include_attachments: true },
    answers: { 202: { ...ACCEPTED, operation: 'forward' } },
  },
  'messages.list': { answers: { 200: { data: [MESSAGE], next_cursor: NEXT_CURSOR } } },
  'messages.get': { answers: { 200: MESSAGE } },
  'messages.update': { body: { labels_add: ['seen'], read: true } },
  'messages.cancel': { answers: { 200: { ...MESSAGE, status: 'canceled' } } },
  'messages.resolve': { body: { outcome: 'not_sent' } },
  'threads.list': { answers: { 200: { data: [THREAD], next_cursor: null } } },
  'threads.get': { answers: { 200: { ...THREAD, messages: [MESSAGE], next_cursor: null } } },
  'events.get': {
    answers: {
      200: {
        id: exampleId('evt'),
        type: 'message.delivered',
        api_version: '2026-10-01',
        occurred_at: '2026-10-09T10:12:05.120Z',
        tenant_id: TENANT.id,
        identity_id: IDENTITY.id,
        sequence: 42,
        data: { message_id: MESSAGE.id, recipient: 'sam@example.net', smtp_code: '250' },
      },
    },
  },
  'usage.get': {
    answers: {
      200: {
        billing: 'metered',
        period_start: '2026-10-01T00:00:00.000Z',
        period_end: '2026-11-01T00:00:00.000Z',
        features: [
          {
            feature: 'sends',
            granted: 1000,
            used: 120,
            held: 2,
            remaining: 878,
            unlimited: false,
            resets_at: '2026-11-01T00:00:00.000Z',
          },
        ],
      },
    },
  },
  'usage.daily': {
    answers: { 200: { data: [{ day: '2026-10-09', inbound: 31, outbound: 12, sends: 14, storage_bytes: 4_812_330 }] } },
  },
  'platform.ledger.rebuild': { answers: { 200: LEDGER_REBUILD } },
  'platform.keys.rotate': {
    answers: {
      200: {
        purpose: 'link',
        kid: '4',
        created_at: '2026-10-09T10:12:03.412Z',
        previous: { kid: '3', verify_until: '2026-10-16T10:12:03.412Z', revoked: false },
      },
    },
  },
} satisfies Examples;

/** The same without the exact types, for code that treats all routes alike. */
export const EXAMPLES: { [K in RouteId]?: { body?: unknown; answers?: Record<number, unknown> } } = TYPED;
