import type { ErrorCode } from '@pmail/core/errors.ts';
import { type IdPrefix, parseId } from '@pmail/core/ids.ts';
import { isSigningPurpose, SIGNING_PURPOSES } from '@pmail/core/keys/signing.ts';
import { z } from 'zod';
import { idInput } from '../schemas/common.ts';
import { replaceDoc } from '../schemas/doc.ts';

interface ParamSpec {
  /** Any text passes; what is not well formed names nothing. */
  schema: z.ZodType<string, string>;
  isWellFormed: (text: string) => boolean;
  /** The answer when it names nothing within reach. */
  missing: ErrorCode;
}

function idParam(prefix: IdPrefix, missing: ErrorCode): ParamSpec {
  return { schema: idInput(prefix), isWellFormed: (text) => parseId(prefix, text) !== undefined, missing };
}

/** Every path parameter: what it takes and the answer when that names nothing within reach. */
const SPECS = {
  tenant_id: idParam('ten', 'tenant_not_found'),
  identity_id: idParam('idn', 'identity_not_found'),
  message_id: idParam('msg', 'message_not_found'),
  attachment_id: idParam('att', 'attachment_not_found'),
  thread_id: idParam('thr', 'thread_not_found'),
  event_id: idParam('evt', 'event_not_found'),
  key_id: idParam('key', 'key_not_found'),
  purpose: {
    schema: z.string().meta(
      replaceDoc({
        type: 'string',
        enum: [...SIGNING_PURPOSES],
        description: 'What the keys sign: thread tokens in addresses, links to files, or list cursors.',
      }),
    ),
    isWellFormed: isSigningPurpose,
    missing: 'route_not_found',
  },
  token: {
    schema: z.string().meta({ description: 'Token of the link, as it stands in the mail.' }),
    // Only whoever has the key can tell.
    isWellFormed: () => true,
    missing: 'attachment_not_found',
  },
} as const satisfies Record<string, ParamSpec>;

export type PathParam = keyof typeof SPECS;

export const PATH_PARAMS: Record<PathParam, ParamSpec> = SPECS;

/** The path parameters of a route. */
export function params<const N extends readonly PathParam[]>(...names: N) {
  const shape = Object.fromEntries(names.map((name) => [name, PATH_PARAMS[name].schema]));
  return z.strictObject(shape as { [K in N[number]]: ParamSpec['schema'] });
}

export const NO_PARAMS = z.strictObject({});
export const NO_QUERY = z.strictObject({});
