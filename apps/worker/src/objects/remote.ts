import type { Env } from '../env.ts';
import type { IdentityMailbox } from './mailbox.ts';
import type { TenantQuota } from './quota.ts';

/**
 * An object as its callers see it. The platform's own stub type loses the difference between the members of a union,
 * by which our answers are told apart; the values themselves are plain data either way.
 */
export type Remote<T> = {
  [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: T[K] extends (...args: infer A) => infer R
    ? (...args: A) => Promise<Awaited<R>>
    : never;
};

export function mailboxStub({ MAILBOX }: Env, id: string): Remote<IdentityMailbox> {
  const object = MAILBOX.idFromString(id);
  return lasting(() => MAILBOX.get(object));
}

export function quotaStub({ QUOTA }: Env, id: string): Remote<TenantQuota> {
  const object = QUOTA.idFromString(id);
  return lasting(() => QUOTA.get(object));
}

/**
 * A stub of the platform breaks with the instance that it leads to, and would answer a second try with the error of the
 * first. So every call gets one of its own.
 */
function lasting<T>(stub: () => object): Remote<T> {
  return new Proxy({} as Remote<T>, {
    get: (_target, name) =>
      // Nobody waits for the object itself.
      name === 'then' ? undefined : (...args: unknown[]) => (stub() as Methods)[String(name)]?.(...args),
  });
}

type Methods = Record<string, (...args: unknown[]) => unknown>;
