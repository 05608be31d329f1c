import { LIMITS } from '@pmail/core/limits.ts';
import type { Policy } from '@pmail/core/policy/document.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { id, list, prose } from './common.ts';

const count = z.int().min(0);
const rate = z.number().min(0).max(1);

/** Who may set a field: `free` any tenant key, `lower` tenant keys up to a ceiling, `platform` platform keys only. */
export const POLICY_CLASSES = ['free', 'lower', 'platform'] as const;

const aiDisclosure = {
  mode: z.enum(['none', 'footer', 'header']),
  text: prose(BOUNDS.ai_disclosure_chars_max, 'The sentence of the footer.', 1),
};
const autoReply = { allowed: z.boolean(), max_automatic_exchanges: count };
const abuse = { complaint_rate_pause: rate, bounce_rate_pause: rate };
const domains = {
  allow_create_zone: z.boolean(),
  cloudflare_zones: list(z.string().min(1).max(LIMITS.domain_octets_max), BOUNDS.cloudflare_zones_count_max),
};
const NOT_APPLIED = 'It is kept and not applied yet: this version deletes no mail by its age.';
const retention = {
  raw_days: z
    .int()
    .min(1)
    .meta({ description: `Days until the bytes of a message are deleted. ${NOT_APPLIED}` }),
  message_days: z
    .int()
    .min(1)
    .nullable()
    .meta({ description: `Days until a message is deleted; null keeps it. ${NOT_APPLIED}` }),
  events_days: z
    .int()
    .min(1)
    .max(BOUNDS.events_days_max)
    .meta({ description: 'Days until events can no longer be read or replayed, and are deleted.' }),
};
const quarantine = { on_auth_fail: z.boolean(), spam_threshold: rate };
const inbound = { per_sender_per_hour: z.int().min(1), ses_bounce_retired: z.boolean() };

const scalars = {
  identity_daily_send_cap: count.meta({ description: 'Messages an identity may send in a day.' }),
  tenant_daily_send_cap: count.meta({ description: 'Messages the tenant may send in a day.' }),
  max_recipients: z.int().min(1).max(LIMITS.recipients_count_max).meta({ description: 'Recipients of one message.' }),
  send_allowlist_only: z.boolean().meta({ description: 'Send only to addresses on the allow list.' }),
  large_attachments: z
    .enum(['refuse', 'link'])
    .meta({ description: 'What happens to attachments that do not fit: refuse the send, or send links to them.' }),
  link_ttl_hours: z.int().min(1).max(BOUNDS.link_ttl_hours_max).meta({ description: 'How long such a link works.' }),
  domain_fallback: z
    .boolean()
    .meta({ description: 'Send from the platform address while the own domain is failing, instead of failing.' }),
  webhook_text_bytes: z
    .int()
    .min(0)
    .max(BOUNDS.webhook_text_bytes_max)
    .meta({ description: 'Most bytes of text in `message.received`.' }),
};

/** The effective policy of a tenant. */
export const policy = z
  .object({
    ...scalars,
    ai_disclosure: z.object(aiDisclosure).meta({ description: 'How mail says that an AI helped to write it.' }),
    auto_reply: z.object(autoReply),
    abuse: z.object(abuse).meta({ description: 'Complaint and bounce rates above which an identity is paused.' }),
    domains: z.object(domains),
    retention: z
      .object(retention)
      .meta({ description: 'Days until mail and events are deleted. Only that of events is applied yet.' }),
    quarantine: z.object(quarantine),
    inbound: z.object(inbound),
  })
  .meta({ id: 'Policy' }) satisfies z.ZodType<Policy>;

type Resettable<S extends z.ZodRawShape> = { [K in keyof S]: z.ZodOptional<z.ZodNullable<S[K]>> };

/** Every field may be missing (keep what is stored) or null (back to the value of the deployment). */
function resettable<S extends z.ZodRawShape>(shape: S): Resettable<S> {
  const entries = Object.entries(shape).map(([name, schema]) => [name, z.optional(z.nullable(schema))]);
  return Object.fromEntries(entries) as Resettable<S>;
}

/** A group of the policy: some of its fields, or null for all of them. */
function group<S extends z.ZodRawShape>(shape: S) {
  return z.strictObject(resettable(shape));
}

/** A change to a policy. Lists replace; one refused field refuses the whole change. */
export const policyPatch = z
  .strictObject({
    ...resettable(scalars),
    ...resettable({
      ai_disclosure: group(aiDisclosure),
      auto_reply: group(autoReply),
      abuse: group(abuse),
      domains: group(domains),
      retention: group(retention),
      quarantine: group(quarantine),
      inbound: group(inbound),
    }),
  })
  .meta({ id: 'PolicyPatch', description: 'Fields to change. Null puts a field back to its default.' });

export const patchPolicyBody = z.strictObject({ policy: policyPatch }).meta({ id: 'UpdatePolicyRequest' });

export const policyAnswer = z
  .object({
    tenant_id: id('ten'),
    policy_version: z.int().meta({ description: 'Rises with every change.' }),
    policy,
    fields: z.array(
      z.object({
        field: z.string().meta({ description: 'Dotted name, such as `auto_reply.allowed`.' }),
        class: z.enum(POLICY_CLASSES),
        writable: z.boolean().meta({ description: 'Whether the asking key may set it.' }),
        ceiling: z
          .union([z.number(), z.boolean()])
          .nullable()
          .meta({ description: 'The loosest value the asking key may set.' }),
        ceiling_source: z.enum(['deployment', 'platform']).nullable(),
      }),
    ),
  })
  .meta({ id: 'PolicyDocument' });
