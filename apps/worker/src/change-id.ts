import { derivedId, type Id, type IdPrefix } from '@pmail/core/ids.ts';
import type { Config } from './env.ts';
import { hmac } from './ports/secrets.ts';

/**
 * An id for a change of `subject` at `at` (Unix ms), the same whenever it is asked for: whoever tells of a change again
 * tells the same event, and writes the same entry of the log.
 */
export async function changeId<P extends IdPrefix>(
  { hash_key }: Pick<Config, 'hash_key'>,
  prefix: P,
  what: string,
  subject: string,
  at: number,
): Promise<Id<P>> {
  return derivedId(prefix, at, await hmac(hash_key, `${what}:${subject}:${at}`));
}
