import { findIdentity } from '@pmail/engine/directory/identities.ts';
import { config, type Env } from '../env.ts';
import { createLog } from '../log.ts';
import { d1 } from '../ports/sql.ts';
import { type CallContext, isNoOwner, NotMadeYet } from './calls.ts';
import type { IdentityMailbox } from './mailbox.ts';
import { mailboxInit } from './mailbox-init.ts';
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

/**
 * A mailbox. One that has no owner, because the call that should have given it one was lost when the identity was made,
 * gets it from the directory before it is asked again: whoever comes first makes up for it.
 */
export function mailboxStub(env: Env, id: string): Remote<IdentityMailbox> {
  const object = env.MAILBOX.idFromString(id);
  const mailbox: Remote<IdentityMailbox> = lasting(() => env.MAILBOX.get(object));
  return proxy(async (name, args) => {
    const ask = () => (mailbox as unknown as Methods)[name]?.(...args);
    try {
      return await ask();
    } catch (error) {
      if (!isNoOwner(error)) throw error;
      await giveOwner(env, id, mailbox, args[0] as CallContext, error);
      return ask();
    }
  });
}

/** Throws `lack`, that the mailbox has no owner, when the directory knows of none that it shall have. */
async function giveOwner(
  env: Env,
  id: string,
  mailbox: Remote<IdentityMailbox>,
  call: CallContext,
  lack: unknown,
): Promise<void> {
  const db = d1(env.DB);
  const row = call.identity_id === null ? undefined : await findIdentity(db, call.identity_id);
  // The mailbox of an identity on its way out must not come back.
  const leaving = row?.status === 'deleting' || row?.status === 'deleted';
  if (row === undefined || leaving || row.mailbox_do_id !== id || row.tenant_id !== call.tenant_id) throw lack;
  createLog(env.PM_LOG_LEVEL, { object: 'mailbox' })('warn', 'mailbox_owner_made_up_for', { identity_id: row.id });
  try {
    await mailbox.init(call, await mailboxInit(config(env), db, row, Date.now()));
  } catch (cause) {
    throw new NotMadeYet('mailbox', { cause });
  }
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
  return proxy((name, args) => (stub() as Methods)[name]?.(...args));
}

function proxy<T>(call: (name: string, args: unknown[]) => unknown): Remote<T> {
  return new Proxy({} as Remote<T>, {
    get: (_target, name) =>
      // Nobody waits for the object itself.
      name === 'then' ? undefined : (...args: unknown[]) => call(String(name), args),
  });
}

type Methods = Record<string, (...args: unknown[]) => unknown>;
