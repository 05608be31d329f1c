import { ANY_QUERY, params } from './params.ts';
import { route } from './spec.ts';

export const linkRoutes = {
  'links.get': route({
    method: 'GET',
    path: '/v1/links/{token}',
    summary: 'Download a linked file',
    description:
      'The address that stands in a mail for a file too large to send. Whoever has it may read the file until it expires. ' +
      'A link that is wrong, over or leads nowhere always gets the same 404.',
    tag: 'Messages',
    access: { kind: 'public' },
    idempotency: 'none',
    params: params('token'),
    query: ANY_QUERY,
    body: null,
    success: [
      {
        status: 200,
        description: 'The file, under its own type where that is harmless, else as application/octet-stream.',
        schema: null,
        contentType: '*/*',
      },
    ],
    errors: ['rate_limited'],
  }),
};
