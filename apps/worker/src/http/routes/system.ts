import { OPENAPI_JSON } from '@pmail/contracts/openapi.generated.ts';
import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import { VERSION } from '@pmail/core/brand.ts';
import { ok } from '@pmail/core/result.ts';
import { rfc3339OrNull } from '@pmail/core/time.ts';
import type { RequestContext } from '../context.ts';

type Group = {
  [K in Extract<RouteId, 'health.get' | 'openapi.get' | 'me.get'>]: RouteHandler<K, RequestContext>;
};

export const systemHandlers: Group = {
  // Reaching a handler at all means that the settings are complete.
  'health.get': ({ config }) =>
    Promise.resolve(
      ok({
        status: 200 as const,
        body: {
          status: 'ok' as const,
          version: VERSION,
          commit: config.commit,
          env: config.env,
          ses_region: config.ses_region,
        },
      }),
    ),

  'openapi.get': () => Promise.resolve(ok({ status: 200 as const, body: OPENAPI_JSON })),

  'me.get': ({ key }) => {
    const { id: key_id, name, level, mode, tenant_id, identity_id, permissions, expires_at } = key;
    const body = {
      key_id,
      name,
      level,
      mode,
      tenant_id,
      identity_id,
      permissions,
      expires_at: rfc3339OrNull(expires_at),
    };
    return Promise.resolve(ok({ status: 200 as const, body }));
  },
};
