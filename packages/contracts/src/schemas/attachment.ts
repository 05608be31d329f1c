import { isBase64 } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { AttachmentInput } from '@pmail/core/message/request.ts';
import type { AttachmentResource } from '@pmail/core/message/resource.ts';
import { z } from 'zod';
import { id } from './common.ts';

/** A file to send. Its name, type and content id are judged with the rest of the message, not here. */
export const attachmentInput = z
  .strictObject({
    filename: z.string().meta({
      description: `At most ${LIMITS.attachment_filename_bytes_max} bytes, paths and control characters removed.`,
    }),
    content_type: z.string().meta({ description: 'type/subtype without parameters.', examples: ['application/pdf'] }),
    // A scan of the text without decoding it: bodies reach 7 MiB and the bytes are needed only when composing.
    content_base64: z
      .string()
      .refine(isBase64, 'must be base64 with padding and without line breaks')
      .meta({ description: 'Base64 (RFC 4648 section 4) with padding. Empty for an empty file.' }),
    disposition: z
      .enum(['attachment', 'inline'])
      .optional()
      .meta({ description: '`attachment` unless given.', default: 'attachment' }),
    content_id: z.string().optional().meta({ description: 'Required on inline parts; the HTML names it as `cid:`.' }),
  })
  .meta({ id: 'AttachmentInput' }) satisfies z.ZodType<AttachmentInput>;

export const attachment = z
  .object({
    id: id('att'),
    filename: z.string().nullable(),
    content_type: z.string(),
    size: z.int().meta({ description: 'Bytes.' }),
    disposition: z.enum(['attachment', 'inline']).nullable(),
    content_id: z.string().nullable(),
    text_status: z.enum(['pending', 'ready', 'unavailable', 'skipped']),
    pages: z.int().nullable(),
    risk: z
      .string()
      .nullable()
      .meta({
        description:
          'executable, macro, encrypted_archive, archive_bomb, type_mismatch or encrypted_document; null when none was ' +
          'found. A download of such a file needs `quarantine:review`.',
      }),
  })
  .meta({ id: 'Attachment' }) satisfies z.ZodType<AttachmentResource>;
