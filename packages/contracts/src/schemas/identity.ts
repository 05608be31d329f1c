import { hasLoneSurrogate } from '@pmail/core/address/names.ts';
import { utf8Length } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { contactAddress, id, idInput, line, metadata, metadataInput, page, prose, time } from './common.ts';

export const IDENTITY_STATUSES = ['active', 'paused', 'deleting', 'deleted'] as const;
export const PAUSE_REASONS = ['manual', 'abuse_threshold', 'tenant_suspended'] as const;
export const ADDRESS_STATUSES = ['pending', 'active', 'retiring', 'retired'] as const;

const displayName = line(LIMITS.display_name_chars_max, 'Name shown beside the address.');
const purpose = line(BOUNDS.purpose_chars_max, 'What the identity is for, to filter by.');

const ownerInput = z
  .strictObject({ name: line(BOUNDS.owner_name_chars_max, 'Name of the person.'), email: contactAddress })
  .meta({ description: 'The person who answers for what the identity sends. Nothing is sent without one.' });

const signatureText = prose(BOUNDS.signature_text_chars_max, 'Plain text.');
const signatureHtml = z
  .string()
  .refine((text) => utf8Length(text) <= BOUNDS.signature_html_bytes_max, {
    error: `must have at most ${BOUNDS.signature_html_bytes_max} bytes`,
  })
  .refine((text) => !hasLoneSurrogate(text), 'must be well-formed Unicode')
  .meta({ description: `At most ${BOUNDS.signature_html_bytes_max} bytes; stored after sanitising.` });
const signatureInput = z
  .strictObject({ text: signatureText.nullable().optional(), html: signatureHtml.nullable().optional() })
  .meta({ description: 'Added below the text of every message.' });

const sendPolicyInput = z
  .strictObject({
    daily_cap: z
      .int()
      .min(0)
      .nullable()
      .optional()
      .meta({ description: 'Messages a day; null for the cap of the policy, above which only platform keys can go.' }),
    auto_reply: z.enum(['allowed', 'denied']).optional(),
    require_known_recipient: z
      .boolean()
      .optional()
      .meta({ description: 'Send only to addresses this identity has exchanged mail with.' }),
  })
  .meta({ description: 'Narrows the policy of the tenant for this identity.' });

export const createIdentityBody = z
  .strictObject({
    // Free text: names outside the rules get the answer of the naming rules, which says what is wrong with them.
    username: z.string().meta({
      description:
        'Name before the @: 1 to 24 of a-z, 0-9, dot, underscore and dash, starting with a letter or digit, stored in ' +
        'lower case. Names that could be mistaken for a role or for another name are refused.',
    }),
    display_name: displayName,
    purpose: purpose.nullable().optional(),
    client_id: line(
      BOUNDS.client_id_chars_max,
      'Your own id. Repeating the request with it answers with the identity that exists.',
    ).optional(),
    owner: ownerInput.nullable().optional(),
    signature: signatureInput.optional(),
    send_policy: sendPolicyInput.optional(),
    metadata: metadataInput.optional(),
    domain_id: idInput('dom', 'Domain of the primary address. Default: the platform domain.').optional(),
  })
  .meta({ id: 'CreateIdentityRequest' });

export const patchIdentityBody = z
  .strictObject({
    display_name: displayName.optional(),
    purpose: purpose.nullable().optional(),
    owner: ownerInput.nullable().optional(),
    signature: signatureInput.optional(),
    send_policy: sendPolicyInput.optional(),
    metadata: metadataInput.optional(),
    status: z
      .enum(['active', 'paused'])
      .optional()
      .meta({ description: 'A paused identity receives but does not send. A pause for abuse needs a tenant key.' }),
  })
  .meta({ id: 'UpdateIdentityRequest' });

export const address = z
  .object({
    id: id('adr'),
    identity_id: id('idn'),
    address: z.string(),
    local_part: z.string(),
    domain_id: id('dom'),
    role: z.enum(['primary', 'alias']),
    status: z.enum(ADDRESS_STATUSES),
    retire_at: time.nullable(),
    retired_at: time.nullable(),
    forwarding: z
      .enum(['unverified', 'ok', 'failed'])
      .nullable()
      .meta({ description: 'Only where the mail system of the domain forwards to the platform address.' }),
    forwarding_checked_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Address' });

export const identity = z
  .object({
    id: id('idn'),
    tenant_id: id('ten'),
    username: z.string(),
    display_name: z.string(),
    purpose: z.string().nullable(),
    status: z.enum(IDENTITY_STATUSES),
    pause_reason: z.enum(PAUSE_REASONS).nullable(),
    primary_address: z.string(),
    addresses: z.array(address).meta({ description: 'Every address, whatever its status.' }),
    owner: z.object({ name: z.string(), email: z.string() }).nullable(),
    signature: z.object({ text: z.string().nullable(), html: z.string().nullable() }),
    send_policy: z.object({
      daily_cap: z.int().meta({ description: 'The cap in force.' }),
      auto_reply: z.enum(['allowed', 'denied']),
      require_known_recipient: z.boolean(),
    }),
    metadata,
    client_id: z.string().nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Identity' });

export const identityPage = page('IdentityPage', identity);
export const addressPage = page('AddressPage', address);
