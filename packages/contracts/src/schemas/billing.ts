import { z } from 'zod';
import { BILLING_MODES } from './tenant.ts';

const mode = z.enum(BILLING_MODES).meta({
  description: '`metered` refuses what goes beyond an allowance; `exempt` and `disabled` count and refuse nothing.',
});

const NOT_COUNTED = 'It is kept and not counted yet: this version refuses nothing by it.';

/** An amount of each feature that the mode can meter. Null has no bound. */
function amounts<S extends z.ZodType>(of: (description: string) => S) {
  return {
    inboxes: of(`Identities. ${NOT_COUNTED}`),
    sends: of('Recipients in a month, which begins on the first, UTC.'),
    custom_domains: of(`Domains of the tenant. ${NOT_COUNTED}`),
    storage_gb: of(`Gigabytes stored. ${NOT_COUNTED}`),
  };
}

export const patchBillingBody = z
  .strictObject({
    mode: mode.optional(),
    granted: z
      .strictObject(amounts((description) => z.int().min(0).nullable().optional().meta({ description })))
      .optional()
      .meta({ description: 'Allowances to set; null lifts the bound. Those that are missing stay.' }),
  })
  .meta({ id: 'UpdateBillingRequest' });

export const billing = z
  .object({
    mode,
    granted: z
      .object(amounts((description) => z.int().nullable().meta({ description })))
      .meta({ description: 'Allowances in mode `metered`; null has no bound. Other modes keep them for later.' }),
  })
  .meta({ id: 'Billing' });
