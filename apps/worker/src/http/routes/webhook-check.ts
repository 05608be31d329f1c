import { grants } from '@pmail/contracts/permissions.ts';
import { type IdentityId, parseId, type TenantId } from '@pmail/core/ids.ts';
import { invalidRequest, ok, type Refusal, type Result, refuse } from '@pmail/core/result.ts';
import { endpointUrlFault } from '@pmail/core/webhooks/url.ts';
import { reachFault } from '@pmail/engine/webhooks/deliver.ts';
import { type EndpointRow, mayName } from '@pmail/engine/webhooks/endpoints.ts';
import { endpointRules, webhookWorld } from '../../consumers/webhook-world.ts';
import { ResolverFault } from '../../ports/resolver.ts';
import type { RequestContext } from '../context.ts';

/** What must be true of an endpoint before it is stored: its URL, the identities it names, what its types reveal. */

/** Form first, then every address of the host as it is now. */
export async function checkUrl(context: RequestContext, url: string): Promise<Refusal | null> {
  const fault = endpointUrlFault(url, endpointRules(context.env));
  if (fault !== null) return invalidRequest({ path: 'url', message: fault });
  const { rules, resolve } = webhookWorld(context.env, context.requestId);
  let resolversAway = false;
  const noted = async (host: string): Promise<string[]> => {
    try {
      return await resolve(host);
    } catch (error) {
      resolversAway = error instanceof ResolverFault && !error.of_the_name;
      throw error;
    }
  };
  const unreachable = await reachFault({ rules, resolve: noted }, url);
  // The URL may be a good one; nobody could be asked.
  if (resolversAway) return refuse('unavailable', { step: 'resolver' });
  return unreachable === null ? null : invalidRequest({ path: 'url', message: UNREACHABLE[unreachable] });
}

const UNREACHABLE = {
  invalid_url: 'is not allowed',
  dns: 'has a host whose address was not found',
  ssrf_blocked: 'has a host with an address that must not be reached',
} as const;

/** Who subscribes to mail reads it, so the key must be allowed to. */
export function checkTypes({ key }: RequestContext, types: readonly string[]): Refusal | null {
  const all = types.includes('*');
  if ((all || types.some((type) => type.startsWith('message.'))) && !grants(key.permissions, 'messages:read')) {
    return refuse('permission_denied', { required: 'messages:read' });
  }
  if ((all || types.includes('message.quarantined')) && !grants(key.permissions, 'quarantine:review')) {
    return refuse('permission_denied', { required: 'quarantine:review' });
  }
  return null;
}

/** The identities that a request names, each once, when an endpoint of this owner may name them all. */
export async function checkIdentities(
  { db }: RequestContext,
  tenant: TenantId | null,
  given: readonly string[],
): Promise<Result<IdentityId[]>> {
  const ids = [...new Set(given)].map((text) => parseId('idn', text));
  if (!ids.every((id) => id !== undefined)) return refuse('identity_not_found');
  return (await mayName(db, tenant, ids)) ? ok(ids) : refuse('identity_not_found');
}

export function typesOf(row: EndpointRow): string[] {
  return JSON.parse(row.event_types_json) as string[];
}
