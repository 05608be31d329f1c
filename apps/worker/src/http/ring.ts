import type { KeyringWorld } from '../ports/keyring.ts';
import type { RequestContext } from './context.ts';

/** The signing keys as a request sees them. */
export function ringOf({ db, config, env, now }: Pick<RequestContext, 'db' | 'config' | 'env' | 'now'>): KeyringWorld {
  return { db, master_key: config.master_key, now: () => now, cacheKey: env };
}
