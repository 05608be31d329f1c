import { type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';

/** Codes that the table need not provoke: those that other tests do, and those that nothing can. */

type Codes = Partial<Record<RouteId, ErrorCode[]>>;

const KEY_REACH: ErrorCode[] = ['key_scope_exceeded'];

/** What other files provoke. That each file names route and code is checked. */
export const ELSEWHERE: Record<string, Codes> = {
  'management-tenants': {
    'tenants.create': ['slug_taken', 'suffix_taken'],
    'tenants.update': ['tenant_erased'],
    'tenants.policy.update': ['tenant_erased'],
  },
  'management-policy': {
    'tenants.policy.update': ['domain_in_use'],
  },
  'management-keys': {
    'keys.create': ['key_scope_exceeded', 'key_limit_reached', 'tenant_not_found', 'identity_not_found'],
    'keys.revoke': KEY_REACH,
    'keys.rotate': KEY_REACH,
  },
  'management-identity-create': {
    'identities.create': [
      'address_invalid',
      'address_unsupported',
      'address_reserved',
      'local_part_too_long',
      'domain_not_found',
      'domain_not_ready',
      'address_taken',
      'username_taken',
      'client_id_conflict',
      'tenant_suspended',
      'tenant_erased',
      'cf_token_required',
    ],
  },
  'management-identities': {
    'identities.list': ['tenant_not_found'],
    'identities.lookup': ['identity_not_found'],
    'identities.update': ['scope_denied', 'identity_paused'],
  },
  billing: {
    'tenants.billing.update': ['tenant_erased'],
  },
  'ses-hook': {
    'hooks.ses': ['invalid_signature'],
  },
  'signing-keys': {
    'platform.keys.rotate': ['key_limit_reached'],
  },
  management: {
    'usage.get': ['tenant_not_found'],
    'usage.daily': ['tenant_not_found'],
  },
};

interface Impossible {
  why: string;
  code: ErrorCode;
  on: (route: RouteId) => boolean;
}

const oneOf =
  (...routes: RouteId[]) =>
  (route: RouteId): boolean =>
    routes.includes(route);

/** What the contract declares, because every route may answer it, and these routes have no way to. */
export const IMPOSSIBLE: Impossible[] = [
  {
    why: 'it calls no object; the directory has a deadline of its own, which answers unavailable',
    code: 'timeout',
    on: oneOf(
      'health.get',
      'openapi.get',
      'me.get',
      'tenants.list',
      'tenants.get',
      'tenants.policy.get',
      'tenants.policy.update',
      'tenants.billing.get',
      'keys.create',
      'keys.list',
      'keys.get',
      'keys.revoke',
      'keys.rotate',
      'identities.listOfTenant',
      'identities.list',
      'identities.lookup',
      'identities.get',
      'identities.addresses.list',
      'usage.daily',
      'platform.keys.rotate',
      'webhooks.create',
      'webhooks.createOfTenant',
      'webhooks.list',
      'webhooks.listOfTenant',
      'webhooks.get',
      'webhooks.update',
      'webhooks.delete',
      'webhooks.rotateSecret',
      'webhooks.deliveries.list',
      'webhooks.replay',
      'suppressions.list',
      'suppressions.create',
      'suppressions.delete',
      'lists.list',
      'lists.get',
      'lists.put',
      'lists.delete',
    ),
  },
  {
    why: 'the directory has changed when the object is told of it, so a slow one answers unavailable',
    code: 'timeout',
    on: oneOf('tenants.update', 'tenants.billing.update', 'identities.create', 'identities.update'),
  },
  {
    why: 'nobody waits for its answer but SNS, which is told of any fault in the same way',
    code: 'timeout',
    on: oneOf('hooks.ses'),
  },
  {
    why: 'an endpoint that does not answer is the result of the test, not a fault of the request',
    code: 'timeout',
    on: oneOf('webhooks.test'),
  },
  { why: 'any valid key may ask', code: 'permission_denied', on: oneOf('me.get') },
  {
    why: 'no level of key is barred from it and it sets nothing that has a bound',
    code: 'scope_denied',
    on: (route) => {
      const { access } = routeSpec(route);
      return access.kind === 'key' && access.levels === undefined && route !== 'identities.update';
    },
  },
  ...(['domain_in_use', 'billing_limit', 'upstream_error', 'upstream_rate_limited'] as const).map((code) => ({
    why: 'the provider calls and the allowance for inboxes that it belongs to are not there yet',
    code,
    on: oneOf('identities.create'),
  })),
];
