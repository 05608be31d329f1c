import { z } from 'zod';
import { ledgerRebuild } from '../schemas/ledger-rebuild.ts';
import { switchParam } from '../schemas/query.ts';
import { params } from './params.ts';
import { route } from './spec.ts';

export const recoveryRoutes = {
  'platform.ledger.rebuild': route({
    method: 'POST',
    path: '/v1/platform/identities/{identity_id}/rebuild-ledger',
    summary: 'Make the idempotency ledger of a mailbox again',
    description:
      'For a mailbox whose storage was put back to an earlier time. Every sent copy in the object store says which key ' +
      'made it, and from that the ledger is made again; a send that the mailbox no longer knows comes back as ' +
      '`uncertain`. A mailbox that was put back mostly notices by its own events, refuses sends with `unavailable`, and ' +
      'does this by itself; say `restored=true` where it cannot have noticed. One request is one ' +
      'bounded step, so that each needs a key of its own, if any.',
    tag: 'Platform',
    access: { kind: 'key', permissions: ['platform:ops'], levels: ['platform'] },
    idempotency: 'optional',
    params: params('identity_id'),
    query: z.strictObject({
      restored: switchParam('The mailbox was put back, and what it holds as queued may have left.').optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'How far the rebuild is.', schema: ledgerRebuild }],
    errors: [],
  }),
};
