import type { IdentityId, TenantId } from '@pmail/core/ids.ts';

/** First argument of every call to an object: who it is for, checked against the owner stored there. */
export interface CallContext {
  v: 1;
  tenant_id: TenantId;
  identity_id: IdentityId | null;
  request_id: string;
}

/** A call reached the wrong object, or one without an owner. Always a fault of ours. */
export class OwnerMismatch extends Error {
  override name = 'OwnerMismatch';
}
