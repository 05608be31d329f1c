import type { AttachmentId, IdentityId, MessageId, TenantId } from '../ids.ts';

/** Keys of the object store. They hold ids only, never a name or an address. */

export interface Owner {
  tenant_id: TenantId;
  identity_id: IdentityId;
}

function identityPrefix({ tenant_id: tenant, identity_id: identity }: Owner): string {
  return `t/${tenant}/i/${identity}`;
}

/** Sent copy, as composed. */
export function sentKey(owner: Owner, message: MessageId): string {
  return `${identityPrefix(owner)}/out/${message}.eml`;
}

/** An attachment of an outbound message, for download. */
export function sentAttachmentKey(owner: Owner, message: MessageId, attachment: AttachmentId): string {
  return `${sentAttachmentPrefix(owner, message)}${attachment}`;
}

export function sentAttachmentPrefix(owner: Owner, message: MessageId): string {
  return `${sentPrefix(owner)}${message}/a/`;
}

export function sentPrefix(owner: Owner): string {
  return `${identityPrefix(owner)}/out/`;
}

/** Raw inbound mail, as it arrived. */
export function rawKey(owner: Owner, message: MessageId): string {
  return `${identityPrefix(owner)}/m/${message}/raw.eml`;
}

export function inboundAttachmentKey(owner: Owner, message: MessageId, attachment: AttachmentId): string {
  return `${identityPrefix(owner)}/m/${message}/a/${attachment}`;
}
