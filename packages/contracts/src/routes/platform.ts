import { z } from 'zod';
import { switchParam } from '../schemas/query.ts';
import { signingKeyRotation } from '../schemas/signing-key.ts';
import { params } from './params.ts';
import { route } from './spec.ts';

const tag = 'Platform';

export const platformRoutes = {
  'platform.keys.rotate': route({
    method: 'POST',
    path: '/v1/platform/keys/{purpose}/rotate',
    summary: 'Replace a signing key',
    description:
      'What the key before has signed stays valid for its time: links for 7 days, thread tokens for 90, cursors for 24 ' +
      'hours. With `revoke_previous=true` it ends at once, and every older one with it. A part of the service that remembers the key before may take ' +
      'or sign with it for up to five minutes more, but for links, whose keys are looked up each time.',
    tag,
    access: { kind: 'key', permissions: ['platform:ops'], levels: ['platform'] },
    idempotency: 'optional',
    params: params('purpose'),
    query: z.strictObject({
      revoke_previous: switchParam(
        'End the key in use, and all before it, instead of letting them verify for their time.',
      ).optional(),
    }),
    body: null,
    success: [{ status: 200, description: 'The new key is in use.', schema: signingKeyRotation }],
    errors: ['key_limit_reached'],
  }),
};
