import { LIMITS } from '@pmail/core/limits.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { KEY_LEVELS, PERMISSION_NAMES } from '../permissions.ts';
import { id, idInput, line, list, page, time, timeInput } from './common.ts';
import { TENANT_MODES } from './tenant.ts';

const level = z.enum(KEY_LEVELS).meta({ description: 'How far the key reaches.' });
const permissionName = z.enum(PERMISSION_NAMES);

export const createKeyBody = z
  .strictObject({
    name: line(BOUNDS.key_name_chars_max, 'Name for people.'),
    level,
    tenant_id: idInput('ten', 'Tenant of a tenant or identity key.').optional(),
    identity_id: idInput('idn', 'Identity of an identity key.').optional(),
    permissions: list(permissionName, BOUNDS.permissions_count_max, 1, 'No more than the creating key has.'),
    expires_at: timeInput.nullable().optional(),
  })
  .superRefine((body, context) => {
    const add = (field: string, message: string): void => context.addIssue({ code: 'custom', message, path: [field] });
    if (body.level === 'platform' && body.tenant_id !== undefined) add('tenant_id', 'must be absent on a platform key');
    if (body.level !== 'identity' && body.identity_id !== undefined)
      add('identity_id', 'must be absent unless the level is identity');
  })
  .meta({ id: 'CreateKeyRequest' });

export const rotateKeyBody = z
  .strictObject({
    overlap_hours: z
      .int()
      .min(0)
      .max(LIMITS.key_overlap_hours_max)
      .default(BOUNDS.key_overlap_hours_default)
      .meta({ description: 'How long the old secret keeps working.' }),
  })
  .meta({ id: 'RotateKeyRequest' });

export const apiKey = z
  .object({
    id: id('key'),
    name: z.string(),
    level,
    mode: z.enum(TENANT_MODES).meta({ description: 'Platform keys are live; others follow their tenant.' }),
    tenant_id: id('ten').nullable(),
    identity_id: id('idn').nullable(),
    permissions: z.array(permissionName),
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
    last_used_at: time.nullable().meta({ description: 'To the minute.' }),
    created_by_key_id: id('key').nullable(),
    created_at: time,
  })
  .meta({ id: 'ApiKey' });

/** Answer to creating or rotating a key. The secret is stored nowhere, so a replay cannot show it again. */
export const apiKeyWithSecret = apiKey
  .extend({
    secret: z.string().optional().meta({ description: 'The key itself, shown this once.' }),
    secret_replayed: z
      .literal(false)
      .optional()
      .meta({ description: 'Stands for the secret in the replay of an earlier request.' }),
  })
  .meta({ id: 'ApiKeyWithSecret' });

export const apiKeyPage = page('ApiKeyPage', apiKey);

export const me = z
  .object({
    key_id: id('key'),
    name: z.string(),
    level,
    mode: z.enum(TENANT_MODES),
    tenant_id: id('ten').nullable(),
    identity_id: id('idn').nullable(),
    permissions: z.array(permissionName),
    expires_at: time.nullable(),
  })
  .meta({ id: 'Me' });
