import { NO_PARAMS, NO_QUERY } from './params.ts';
import { route } from './spec.ts';

/** Where providers report. No key proves them; each has a proof of its own. */
export const hookRoutes = {
  'hooks.ses': route({
    method: 'POST',
    path: '/hooks/ses',
    summary: 'Delivery events of Amazon SES',
    description:
      'The HTTPS subscription of the SNS topic that carries the events of sent mail; nobody else has a use for it. Takes ' +
      'messages of that one topic, signed by version 2 and not over an hour old; anything else gets 403. ' +
      'An event that cannot be read or belongs to nobody here is acknowledged.',
    tag: 'Platform',
    access: { kind: 'public' },
    idempotency: 'none',
    params: NO_PARAMS,
    query: NO_QUERY,
    body: null,
    rawBody: 'text/plain',
    success: [{ status: 200, description: 'Taken, and not to be sent again.', schema: null }],
    errors: ['invalid_signature', 'rate_limited'],
  }),
};
