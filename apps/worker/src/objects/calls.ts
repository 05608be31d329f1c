import type { IdentityId, TenantId } from '@pmail/core/ids.ts';

/** First argument of every call to an object: who it is for, checked against the owner stored there. */
export interface CallContext {
  v: 1;
  tenant_id: TenantId;
  identity_id: IdentityId | null;
  request_id: string;
}

/** A call reached the wrong object. Always a fault of ours. */
export class OwnerMismatch extends Error {
  override name = 'OwnerMismatch';
}

/** A mailbox was called that nobody has given an owner: the call that should have was lost. It has done nothing. */
export class NoOwner extends Error {
  override name = 'NoOwner';
}

/** Whether a call failed so, also when the error has crossed the wire, where only its name is left. */
export function isNoOwner(error: unknown): boolean {
  return error instanceof Error && error.name === 'NoOwner';
}

/** An object that cannot be used yet, and can be once the cron or the next call has made it. */
export class NotMadeYet extends Error {
  override name = 'NotMadeYet';
  readonly step: string;

  constructor(step: string, options?: ErrorOptions) {
    super(`${step} is not made yet`, options);
    this.step = step;
  }
}
