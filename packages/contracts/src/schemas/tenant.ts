import { isTimeZone } from '@pmail/core/quota/zone.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { contactAddress, id, line, page, time } from './common.ts';
import { policy, policyPatch } from './policy.ts';

export const TENANT_MODES = ['live', 'test'] as const;
export const TENANT_STATUSES = ['active', 'suspended', 'erasing', 'erased'] as const;
export const BILLING_MODES = ['metered', 'exempt', 'disabled'] as const;

const SLUG = /^[a-z0-9][a-z0-9-]{1,31}$/;
const SUFFIX = /^(\.[a-z0-9][a-z0-9-]{1,31})?$/;

const name = line(BOUNDS.tenant_name_chars_max, 'Name for people.');
const timezone = z
  .string()
  .refine(isTimeZone, 'must be an IANA time zone')
  .meta({ description: 'IANA time zone in which the daily caps count. A new one takes effect at its next midnight.' });

const ownerInput = z
  .strictObject({ name: line(BOUNDS.owner_name_chars_max, 'Name of the contact.').optional(), email: contactAddress })
  .meta({ description: 'Contact who gets mail to postmaster@ and abuse@ of the domains of the tenant.' });

export const createTenantBody = z
  .strictObject({
    slug: z.string().regex(SLUG, `must match ${SLUG.source}`).meta({ description: 'Short name, unique for good.' }),
    name,
    mode: z.enum(TENANT_MODES).meta({ description: 'A test tenant reaches only simulator and local addresses.' }),
    timezone: timezone.optional(),
    address_suffix: z
      .string()
      .regex(SUFFIX, `must match ${SUFFIX.source}`)
      .optional()
      .meta({ description: 'Ends the part before the @ of platform addresses. Default: a dot and the slug.' }),
    policy: policyPatch.optional(),
    owner: ownerInput.optional(),
    billing: z.strictObject({ mode: z.enum(BILLING_MODES) }).optional(),
  })
  .meta({ id: 'CreateTenantRequest' });

export const patchTenantBody = z
  .strictObject({
    name: name.optional(),
    timezone: timezone.optional(),
    owner: ownerInput.nullable().optional(),
    policy: policyPatch.optional(),
    status: z
      .enum(['active', 'suspended'])
      .optional()
      .meta({ description: 'Suspending pauses every active identity; resuming undoes only that.' }),
  })
  .meta({ id: 'UpdateTenantRequest' });

export const tenant = z
  .object({
    id: id('ten'),
    slug: z.string(),
    name: z.string(),
    mode: z.enum(TENANT_MODES),
    status: z.enum(TENANT_STATUSES),
    suspended_by: z.enum(['platform']).nullable(),
    address_suffix: z.string(),
    timezone: z.string(),
    policy,
    owner: z.object({ name: z.string().nullable(), email: z.string() }).nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Tenant' });

export const tenantPage = page('TenantPage', tenant);
