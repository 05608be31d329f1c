import type { Address } from '@pmail/core/address/address.ts';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { type Db, queryFirst } from '../sql.ts';

/** Which mailbox an address leads to. */
export interface Route {
  identity_id: IdentityId;
  tenant_id: TenantId;
  mailbox_do_id: string;
}

export interface SenderRoute extends Route {
  quota_do_id: string;
}

/** The owner of a sender address in any state: a retired address still gets the late reports about its mail. */
export function routeSender(db: Db, address: Address): Promise<SenderRoute | undefined> {
  return queryFirst<SenderRoute>(
    db,
    `SELECT a.identity_id, a.tenant_id, i.mailbox_do_id, t.quota_do_id
     FROM addresses a JOIN identities i ON i.id = a.identity_id JOIN tenants t ON t.id = i.tenant_id
     WHERE a.address = ?`,
    address,
  );
}

/** The owner of an address that receives: active or retiring, its identity not on the way out. */
export function routeRecipient(db: Db, address: Address): Promise<Route | undefined> {
  return queryFirst<Route>(
    db,
    `SELECT a.identity_id, a.tenant_id, i.mailbox_do_id FROM addresses a JOIN identities i ON i.id = a.identity_id
     WHERE a.address = ? AND a.status IN ('active', 'retiring') AND i.status IN ('active', 'paused')`,
    address,
  );
}

export function routeIdentity(db: Db, identity: IdentityId): Promise<Route | undefined> {
  return queryFirst<Route>(
    db,
    'SELECT id AS identity_id, tenant_id, mailbox_do_id FROM identities WHERE id = ?',
    identity,
  );
}
