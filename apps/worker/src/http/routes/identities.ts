import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import { parseAddress } from '@pmail/core/address/address.ts';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { ok, type Result, refuse } from '@pmail/core/result.ts';
import {
  findByAddress,
  findIdentity,
  type IdentityFilter,
  listAddresses,
  listIdentities,
} from '@pmail/engine/directory/identities.ts';
import type { RequestContext } from '../context.ts';
import { listedTenant } from '../listed-tenant.ts';
import { byCreation, pageOf } from '../page.ts';
import { createIdentity } from './identity-create.ts';
import { addressResource, type IdentityResource, identityResource } from './identity-resource.ts';
import { updateIdentity } from './identity-update.ts';
import { writable } from './messages.ts';

type Group = { [K in Extract<RouteId, `identities.${string}`>]: RouteHandler<K, RequestContext> };

interface ListQuery extends Pick<IdentityFilter, 'status' | 'purpose' | 'client_id'> {
  limit: number;
  cursor?: string | undefined;
}

/** One page of the identities of a tenant, or of all; an identity key finds itself alone. */
async function identitiesPage(
  context: RequestContext,
  route: 'identities.list' | 'identities.listOfTenant',
  input: { params: object; query: ListQuery },
  tenant: TenantId | null,
): Promise<Result<{ status: 200; body: { data: IdentityResource[]; next_cursor: string | null } }>> {
  const { status, purpose, client_id } = input.query;
  const filter: IdentityFilter = {
    tenant_id: tenant ?? undefined,
    identity_id: context.key.identity_id ?? undefined,
    status,
    purpose,
    client_id,
  };
  return pageOf(context, route, input, {
    read: (limit, after) => listIdentities(context.db, filter, limit, after),
    position: byCreation,
    show: (rows) => rows.map((row) => identityResource(context, row)),
  });
}

export const identityHandlers: Group = {
  'identities.create': (context, { body }) => createIdentity(context, body),

  'identities.list': async (context, { params, query }) => {
    const tenant = await listedTenant(context, query.tenant_id);
    return tenant.ok ? identitiesPage(context, 'identities.list', { params, query }, tenant.value) : tenant;
  },

  'identities.listOfTenant': (context, { params, query }) =>
    identitiesPage(context, 'identities.listOfTenant', { params, query }, context.tenant.id),

  'identities.lookup': async (context, { query }) => {
    const parsed = parseAddress(query.address);
    // What is no address is nobody's.
    const row = parsed.ok ? await findByAddress(context.db, parsed.address, context.key) : undefined;
    if (row === undefined) return refuse('identity_not_found');
    return ok({ status: 200 as const, body: identityResource(context, row) });
  },

  'identities.get': async (context, { params }) => {
    const row = await findIdentity(context.db, params.identity_id as IdentityId);
    if (row === undefined) return refuse('identity_not_found');
    return ok({ status: 200 as const, body: identityResource(context, row) });
  },

  'identities.update': (context, { params, body }) => {
    const gone = writable(context);
    return gone === null ? updateIdentity(context, params.identity_id as IdentityId, body) : Promise.resolve(gone);
  },

  'identities.addresses.list': async (context, { params }) => {
    const rows = await listAddresses(context.db, params.identity_id as IdentityId);
    return ok({ status: 200 as const, body: { data: rows.map(addressResource), next_cursor: null } });
  },
};
