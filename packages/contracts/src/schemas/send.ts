import { LIMITS } from '@pmail/core/limits.ts';
import type { RecipientInput, SendBody } from '@pmail/core/message/request.ts';
import { OUTBOUND_KINDS } from '@pmail/core/message/request.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { attachmentInput } from './attachment.ts';
import { idInput, LABEL, list, textMap, timeInput } from './common.ts';
import { message } from './message.ts';

/**
 * Bodies of send, reply, reply-all and forward. Only their shape is checked here. What a message may say and to whom
 * is decided where the message is made, after its idempotency key was looked up: a repeated request must get its first
 * answer even when today's rules would refuse it.
 */

const recipient = z
  .union([
    z.string(),
    z.strictObject({
      address: z.string().meta({ description: 'Email address with an ASCII part before the @.' }),
      name: z
        .string()
        .optional()
        .meta({ description: `At most ${LIMITS.name_chars_max} characters, no control characters.` }),
    }),
  ])
  .meta({ id: 'Recipient', description: 'An address, or an address with a name.' }) satisfies z.ZodType<RecipientInput>;

const recipients = (min: number, description: string) => list(recipient, LIMITS.recipients_count_max, min, description);

const headers = textMap(
  'Headers of your own: `X-` names, or Importance, Priority, Sensitivity, Keywords, Comments, Organization. Names up ' +
    `to ${LIMITS.header_name_bytes_max} bytes, values up to ${LIMITS.header_value_bytes_max}, together up to ` +
    `${LIMITS.headers_total_bytes_max}.`,
);
const metadata = textMap(
  `Your own data: at most ${LIMITS.metadata_keys_max} members, names up to ${LIMITS.metadata_key_chars_max} ` +
    `characters, values up to ${LIMITS.metadata_value_bytes_max} bytes.`,
);

/** Fields that every operation takes. */
const common = {
  text: z.string().optional().meta({ description: 'Plain text. Derived from `html` when missing.' }),
  html: z.string().optional(),
  attachments: list(
    attachmentInput,
    LIMITS.attachments_count_max,
    0,
    `The composed message, files in base64 included, has at most ${LIMITS.composed_bytes_max} bytes (about 3.6 MiB of files).`,
  ).optional(),
  from_address: z
    .string()
    .optional()
    .meta({ description: 'An active address of the identity. Default: the primary, or the one the thread uses.' }),
  labels: list(
    z.string(),
    BOUNDS.labels_sent_max,
    0,
    `At most ${LIMITS.labels_per_message_max} different ones, each matching ${LABEL.source}.`,
  ).optional(),
  headers: headers.optional(),
  metadata: metadata.optional(),
};

const kind = z
  .enum(OUTBOUND_KINDS)
  .optional()
  .meta({ default: 'transactional', description: '`marketing` needs `unsubscribe` and `consent`.' });

// Ends up between angle brackets in a header, so nothing that could end it may pass.
const MAILTO = /^[\x21-\x3b\x3d\x3f-\x7e]+$/;

export const sendBody = z
  .strictObject({
    to: recipients(1, 'to, cc and bcc together have at most as many recipients as the policy allows.'),
    cc: recipients(0, 'Recipients of a copy.').optional(),
    bcc: recipients(0, 'Recipients whom nobody else sees.').optional(),
    subject: z
      .string()
      .optional()
      .meta({ description: `At most ${LIMITS.subject_chars_max} characters, no control characters.` }),
    ...common,
    kind,
    unsubscribe: z
      .strictObject({
        url: z.string().meta({ description: 'https URL that takes a one-click POST (RFC 8058).' }),
        mailto: z
          .string()
          .regex(MAILTO, 'must be printable ASCII without spaces and angle brackets')
          .max(BOUNDS.unsubscribe_mailto_chars_max)
          .optional()
          .meta({ description: 'Address for people who unsubscribe by mail.' }),
      })
      .optional(),
    consent: z
      .strictObject({
        basis: z.string().meta({ description: 'Why the recipient may be written to.' }),
        recorded_at: timeInput,
      })
      .optional(),
    thread_id: idInput('thr', 'Thread to continue. Default: a new one.').optional(),
  })
  .meta({ id: 'SendRequest', description: '`text` or `html` must be present.' });

sendBody satisfies z.ZodType<SendBody>;

/** Reply and reply-all: the recipients come from the message that is answered. */
export const replyBody = z
  .strictObject({
    ...common,
    kind: z
      .enum(OUTBOUND_KINDS)
      .optional()
      .meta({ default: 'transactional', description: 'A reply cannot be `marketing`.' }),
  })
  .meta({ id: 'ReplyRequest', description: '`text` or `html` must be present.' });

replyBody satisfies z.ZodType<SendBody>;

export const forwardBody = z
  .strictObject({
    to: recipients(1, 'to, cc and bcc together have at most as many recipients as the policy allows.'),
    cc: recipients(0, 'Recipients of a copy.').optional(),
    bcc: recipients(0, 'Recipients whom nobody else sees.').optional(),
    ...common,
    include_attachments: z
      .boolean()
      .optional()
      .meta({ default: true, description: 'Attach the files of the forwarded message, those with a risk apart.' }),
  })
  .meta({ id: 'ForwardRequest' });

forwardBody satisfies z.ZodType<SendBody>;

/** Answer to an accepted send. */
export const sendAnswer = message
  .extend({
    deduplicated: z
      .boolean()
      .meta({ description: 'True when this is the answer of an earlier request with the same key.' }),
  })
  .meta({ id: 'AcceptedMessage' });

export const dryRunAnswer = z
  .object({
    would_send: z.literal(true),
    recipients: z.array(
      z.object({
        address: z.string(),
        field: z.enum(['to', 'cc', 'bcc']),
        status: z.enum(['queued', 'suppressed']),
        reason: z
          .enum([
            'hard_bounce',
            'complaint',
            'unsubscribe',
            'manual',
            'provider',
            'send_block',
            'not_on_allowlist',
            'unknown_recipient',
          ])
          .nullable()
          .meta({ description: 'Why nothing would be sent to this recipient: a suppression, or the rule.' }),
      }),
    ),
  })
  .meta({ id: 'DryRun', description: 'What a send would do. Nothing was stored and nothing was sent.' });
