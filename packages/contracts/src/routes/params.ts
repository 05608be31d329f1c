import type { ErrorCode } from '@pmail/core/errors.ts';
import type { IdPrefix } from '@pmail/core/ids.ts';
import { z } from 'zod';
import { idInput } from '../schemas/common.ts';

/** Every path parameter: the kind of id it takes and the answer when that names nothing within reach. */
export const PATH_PARAMS = {
  tenant_id: { prefix: 'ten', missing: 'tenant_not_found' },
  identity_id: { prefix: 'idn', missing: 'identity_not_found' },
  message_id: { prefix: 'msg', missing: 'message_not_found' },
  attachment_id: { prefix: 'att', missing: 'attachment_not_found' },
  thread_id: { prefix: 'thr', missing: 'thread_not_found' },
  event_id: { prefix: 'evt', missing: 'event_not_found' },
  key_id: { prefix: 'key', missing: 'key_not_found' },
} as const satisfies Record<string, { prefix: IdPrefix; missing: ErrorCode }>;

export type PathParam = keyof typeof PATH_PARAMS;

/** The path parameters of a route. */
export function params<const N extends readonly PathParam[]>(...names: N) {
  const shape = Object.fromEntries(names.map((name) => [name, idInput(PATH_PARAMS[name].prefix)]));
  return z.strictObject(shape as { [K in N[number]]: ReturnType<typeof idInput> });
}

export const NO_PARAMS = z.strictObject({});
export const NO_QUERY = z.strictObject({});
