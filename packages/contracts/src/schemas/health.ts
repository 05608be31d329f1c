import { z } from 'zod';

export const health = z
  .object({
    status: z.enum(['ok', 'degraded']),
    version: z.string(),
    commit: z.string(),
    env: z.string().meta({ description: 'production, staging or local.' }),
    ses_region: z.string().nullable(),
  })
  .meta({ id: 'Health' });
