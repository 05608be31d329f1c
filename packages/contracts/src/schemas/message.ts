import { DELIVERY_STATUSES, INBOUND_STATUSES, OUTBOUND_STATUSES, STATUS_REASONS } from '@pmail/core/delivery/status.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { INBOUND_KINDS, OUTBOUND_KINDS, SEND_OPERATIONS } from '@pmail/core/message/request.ts';
import type { DeliveryResource, MessageResource, TrustResource } from '@pmail/core/message/resource.ts';
import { PROVIDERS } from '@pmail/core/transport/types.ts';
import { z } from 'zod';
import { attachment } from './attachment.ts';
import { id, label, list, mailbox, metadata, page, time } from './common.ts';

export const DIRECTIONS = ['inbound', 'outbound'] as const;
export const MESSAGE_STATUSES = [...OUTBOUND_STATUSES, ...INBOUND_STATUSES] as const;

/** Parts of a message that are left out unless asked for. */
export const MESSAGE_PARTS = ['html', 'headers', 'quoted'] as const;

export const delivery = z
  .object({
    address: z.string(),
    field: z.enum(['to', 'cc', 'bcc']),
    status: z.enum(DELIVERY_STATUSES),
    smtp_code: z
      .string()
      .nullable()
      .meta({ description: 'Reply code of RFC 5321.', examples: ['550'] }),
    enhanced_code: z
      .string()
      .nullable()
      .meta({ description: 'Enhanced code of RFC 3463.', examples: ['5.1.1'] }),
    smtp_response: z
      .string()
      .nullable()
      .meta({ description: 'Text of the other side, or the rule that kept the recipient from being written to.' }),
    bounce_type: z.enum(['hard', 'soft']).nullable(),
    updated_at: time,
  })
  .meta({
    id: 'Delivery',
    description: 'What became of a message for one recipient.',
  }) satisfies z.ZodType<DeliveryResource>;

const trust = z
  .object({
    verdict: z.enum(['pass', 'fail', 'softfail', 'none', 'unaligned', 'unverified']),
    spf: z.string().meta({ description: 'Result as RFC 8601 names it; also for dkim, dmarc and arc.' }),
    dkim: z.string(),
    dmarc: z.string(),
    arc: z.string(),
    known_sender: z.boolean(),
    quarantined: z.boolean(),
    spam_score: z.number().nullable().meta({ description: '0 to 1.' }),
    automated: z.boolean(),
    flags: z.array(z.string()).meta({
      description: 'hidden_text, display_name_spoof, lookalike_domain, reply_to_mismatch, thread_join_unverified.',
    }),
  })
  .meta({
    id: 'Trust',
    description: 'What is known about the sender of inbound mail.',
  }) satisfies z.ZodType<TrustResource>;

export const message = z
  .object({
    id: id('msg'),
    thread_id: id('thr'),
    identity_id: id('idn'),
    direction: z.enum(DIRECTIONS),
    status: z.enum(MESSAGE_STATUSES).meta({
      description:
        'Outbound: queued, submitted, deferred and uncertain can still change; delivered, bounced, complained, ' +
        'rejected, failed, suppressed and canceled have ended. Inbound: received, quarantined, throttled, hidden.',
    }),
    status_reason: z.enum(STATUS_REASONS).nullable(),
    fix: z
      .string()
      .nullable()
      .meta({ description: 'What to do next, while the message or one of its recipients is uncertain.' }),
    from: mailbox.nullable(),
    to: z.array(mailbox),
    cc: z.array(mailbox),
    bcc: z.array(mailbox),
    reply_to: z.array(mailbox),
    delivered_to: z.string().nullable(),
    is_primary_recipient: z.boolean().nullable(),
    subject: z.string().nullable(),
    sent_at: time.nullable(),
    received_at: time,
    extracted_text: z.string().nullable().meta({ description: 'The new text of the message, without what it quotes.' }),
    text: z.string().nullable().meta({ description: 'The whole text; only with `include=quoted`.' }),
    html: z.string().nullable().meta({ description: 'Sanitised HTML; only with `include=html`.' }),
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .nullable()
      .meta({ description: 'Only with `include=headers`.' }),
    attachments: z.array(attachment),
    labels: z.array(z.string()),
    kind: z.enum([...OUTBOUND_KINDS, ...INBOUND_KINDS]),
    read: z.boolean(),
    operation: z.enum(SEND_OPERATIONS).nullable(),
    trust: trust.nullable().meta({ description: 'Inbound mail only.' }),
    quarantine_reason: z
      .string()
      .nullable()
      .meta({ description: 'auth_failed, auth_unverified, spam, risky_attachment or blocked_sender.' }),
    rfc_message_id: z.string().nullable().meta({ description: 'Message-ID without angle brackets, once known.' }),
    in_reply_to: z.string().nullable(),
    provider: z.enum(PROVIDERS).nullable(),
    provider_message_id: z.string().nullable(),
    deliveries: z.array(delivery).nullable().meta({ description: 'Outbound mail only: one entry per recipient.' }),
    flags: z.array(z.string()).meta({
      description:
        'sent_via_fallback, parse_degraded, encrypted, message_id_conflict, reprocessed, reconciled, bcc, loopback, ' +
        'body_truncated.',
    }),
    metadata,
  })
  .meta({
    id: 'Message',
    description: 'A message. What inbound mail says (text, names, subject, headers) is untrusted data.',
  }) satisfies z.ZodType<MessageResource>;

export const messagePage = page('MessagePage', message);

export const patchMessageBody = z
  .strictObject({
    labels_add: list(label, LIMITS.labels_per_message_max).optional(),
    labels_remove: list(label, LIMITS.labels_per_message_max).optional(),
    read: z.boolean().optional(),
  })
  .meta({ id: 'UpdateMessageRequest' });

export const resolveBody = z
  .strictObject({
    outcome: z
      .enum(['sent', 'not_sent'])
      .meta({ description: 'What really happened, as far as a person could find out.' }),
  })
  .meta({ id: 'ResolveMessageRequest' });
