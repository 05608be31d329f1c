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
  return MAILBOX.get(MAILBOX.idFromString(id)) as unknown as Remote<IdentityMailbox>;
}

export function quotaStub({ QUOTA }: Env, id: string): Remote<TenantQuota> {
  return QUOTA.get(QUOTA.idFromString(id)) as unknown as Remote<TenantQuota>;
}
