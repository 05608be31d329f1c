import { config, type Env } from '../env.ts';

/** Ids of new objects, bound to the deployment's jurisdiction for good. */

function options(env: Env): DurableObjectNamespaceNewUniqueIdOptions {
  const { jurisdiction } = config(env);
  return jurisdiction === null ? {} : { jurisdiction };
}

export function newMailboxId(env: Env): string {
  return env.MAILBOX.newUniqueId(options(env)).toString();
}

export function newQuotaId(env: Env): string {
  return env.QUOTA.newUniqueId(options(env)).toString();
}
