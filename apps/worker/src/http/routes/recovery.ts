import type { RouteHandler, RouteId } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { ok } from '@pmail/core/result.ts';
import { mailboxCall, mailboxOf, type RequestContext } from '../context.ts';
import { within } from '../deadline.ts';

type Group = { [K in Extract<RouteId, 'platform.ledger.rebuild'>]: RouteHandler<K, RequestContext> };

export const recoveryHandlers: Group = {
  'platform.ledger.rebuild': async (context, { query }) => {
    const { identity } = context;
    const step = mailboxOf(context, identity).rebuildLedger(mailboxCall(context, identity), query.restored === true);
    const progress = await within(LIMITS.submit_deadline_ms, 'rebuild', step);
    return ok({ status: 200 as const, body: { identity_id: identity.id, ...progress } });
  },
};
