import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import { isSigningPurpose, SIGNING_KIDS } from '@pmail/core/keys/signing.ts';
import { ok, refuse } from '@pmail/core/result.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { rotateSigningKey } from '../../ports/keyring.ts';
import { auditEntry } from '../audit.ts';
import type { RequestContext } from '../context.ts';
import { ringOf } from '../ring.ts';

type Group = { [K in Extract<RouteId, `platform.keys.${string}`>]: RouteHandler<K, RequestContext> };

export const platformHandlers: Group = {
  'platform.keys.rotate': async (context, { params, query }) => {
    const { purpose } = params;
    if (!isSigningPurpose(purpose)) return refuse('route_not_found');
    const revoked = query.revoke_previous === true;
    const rotation = await rotateSigningKey(ringOf(context), purpose, revoked, (kid, previous) => {
      const target = { tenant_id: null, target_type: 'signing_key', target_id: purpose };
      return auditEntry(context, 'signing_key.rotate', target, { kid, previous, revoked });
    });
    if (rotation.kind === 'no_kid_left') return refuse('key_limit_reached', { limit: SIGNING_KIDS.length });
    if (rotation.kind === 'overtaken') return refuse('unavailable', { step: 'directory' });
    const { kid, created_at: createdAt, previous } = rotation;
    return ok({
      status: 200 as const,
      body: {
        purpose,
        kid,
        created_at: rfc3339(createdAt),
        previous:
          previous === null ? null : { kid: previous.kid, verify_until: rfc3339(previous.verify_until), revoked },
      },
    });
  },
};
