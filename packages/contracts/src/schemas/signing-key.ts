import { SIGNING_PURPOSES } from '@pmail/core/keys/signing.ts';
import { z } from 'zod';
import { time } from './common.ts';

export const signingKeyRotation = z
  .object({
    purpose: z.enum(SIGNING_PURPOSES),
    kid: z.string().meta({ description: 'Id of the new key, one character; the key itself is shown to nobody.' }),
    created_at: time,
    previous: z
      .object({
        kid: z.string(),
        verify_until: time.meta({ description: 'Until then what it has signed is taken.' }),
        revoked: z.boolean().meta({ description: 'Whether it was ended before its time.' }),
      })
      .nullable()
      .meta({ description: 'The key that was in use; null when there was none.' }),
  })
  .meta({ id: 'SigningKeyRotation' });
