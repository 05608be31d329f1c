import { parseAddress } from '@pmail/core/address/address.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';
import { type IdPrefix, parseId } from '@pmail/core/ids.ts';
import { SIGNING_PURPOSES } from '@pmail/core/keys/signing.ts';
import { LIST_DIRECTIONS, LIST_KINDS } from '@pmail/core/policy/list-entry.ts';
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

/** One of a few words; a path with any other is no route. */
function wordParam(words: readonly string[], description: string): ParamSpec {
  return {
    schema: z.string().meta(replaceDoc({ type: 'string', enum: [...words], description })),
    isWellFormed: (text) => words.includes(text),
    missing: 'route_not_found',
  };
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
  webhook_id: idParam('whk', 'webhook_not_found'),
  purpose: wordParam(
    SIGNING_PURPOSES,
    'What the keys sign: thread tokens in addresses, links to files, or list cursors.',
  ),
  address: {
    schema: z.string().meta({ description: 'The address in any spelling, percent-encoded.' }),
    isWellFormed: (text) => parseAddress(text).ok,
    missing: 'suppression_not_found',
  },
  direction: wordParam(LIST_DIRECTIONS, 'Whether the list is about mail that comes in or that goes out.'),
  kind: wordParam(LIST_KINDS, 'Whether what stands on the list is let through or held back.'),
  entry: {
    schema: z.string().meta({
      description:
        '`user@host` for one address or `@host` for every address of that domain, in any spelling, percent-encoded.',
    }),
    // A PUT names what is wrong with it, so the routes look for themselves.
    isWellFormed: () => true,
    missing: 'list_entry_not_found',
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
/** For addresses that stand in mail: what scanners and counters append to them changes nothing. */
export const ANY_QUERY = z.object({});
