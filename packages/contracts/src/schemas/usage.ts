import { z } from 'zod';
import { day, time } from './common.ts';
import { BILLING_MODES } from './tenant.ts';

export const FEATURES = ['inboxes', 'sends', 'custom_domains', 'storage_gb'] as const;

const feature = z
  .object({
    feature: z.enum(FEATURES),
    granted: z.number().nullable().meta({ description: 'Null when there is no bound.' }),
    used: z.number().meta({ description: 'Counted for `sends` alone yet; 0 for the other features.' }),
    held: z.number().meta({ description: 'Set aside for mail that is still on its way.' }),
    remaining: z.number().nullable(),
    unlimited: z.boolean(),
    resets_at: time.nullable(),
  })
  .meta({ id: 'FeatureUsage' });

export const usage = z
  .object({
    billing: z.enum(BILLING_MODES),
    period_start: time,
    period_end: time,
    features: z.array(feature),
  })
  .meta({ id: 'Usage' });

export const dailyUsage = z
  .object({
    data: z.array(
      z.object({ day, inbound: z.int(), outbound: z.int(), sends: z.int(), storage_bytes: z.int() }).meta({
        id: 'UsageDay',
        description: 'Messages in and out, recipients accepted, and bytes stored, of one UTC day.',
      }),
    ),
  })
  .meta({ id: 'DailyUsage' });
