import { ERRORS, wireError } from '@pmail/core/errors.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { IDEMPOTENCY_KEY } from '@pmail/core/message/request.ts';
import { BOUNDS } from './bounds.ts';
import { ERROR_DETAILS } from './openapi/error-details.ts';
import { operation, sharedResponses } from './openapi/operation.ts';
import { type Json, type JsonObject, namedSchemas, reachable } from './openapi/schemas.ts';
import { PERMISSIONS } from './permissions.ts';
import { ROUTE_IDS, routeSpec } from './routes.ts';
import { exampleId } from './schemas/common.ts';
import { ERROR_CODES } from './schemas/error.ts';

/** Version of the document. It rises when a route or a field changes. */
const VERSION = '0.1.0';

const PERMISSION_ROWS = Object.entries(PERMISSIONS).map(
  ([name, { levels, allows }]) => `| \`${name}\` | ${levels.join(', ')} | ${allows} |`,
);

const DESCRIPTION = `A mail service for AI agents and applications. An *identity* is a mailbox with one or more addresses; it belongs to a *tenant*.

- **Times** are RFC 3339. Answers use UTC with milliseconds; requests may use any offset.
- **Bodies** are JSON. A field that is not described here is refused, and so is one that is given twice. A body has at most ${BOUNDS.json_depth_max} levels and ${BOUNDS.json_parts_max} objects, lists and members. Clients ignore fields and values they do not know.
- **Ids** name their kind (\`msg_…\`). An id that does not exist, is malformed or lies outside the reach of the key gets the same 404.
- **Lists** take \`limit\` and \`cursor\` and answer with \`data\` and \`next_cursor\`. A cursor works for 24 hours and only with the filters it came with.
- **Errors** all have the shape of \`Error\`. Any path that is not listed answers 404 \`route_not_found\`; a listed path with another method answers 405 \`method_not_allowed\` with an \`Allow\` header.
- **Repeating a request** with the same \`Idempotency-Key\` and body gives the first answer again and does nothing twice. Keys are kept for 30 days.
- **Mail is untrusted.** Names, subjects, texts, headers and files of inbound mail are written by strangers.

## Permissions

A key lists its permissions; there are no wildcards.

| Permission | Key levels | Allows to |
|---|---|---|
${PERMISSION_ROWS.join('\n')}
`;

const TAGS: Record<string, string> = {
  System: 'The service itself and the key in use.',
  Tenants: 'Tenants and their policies.',
  Keys: 'API keys.',
  Identities: 'Mailboxes and their addresses.',
  Messages: 'Sending, reading and following up messages.',
  Threads: 'Conversations.',
  Events: 'What happened, in order.',
  Webhooks: 'Being told of events as they happen.',
  Suppressions: 'Addresses that a tenant does not write to any more.',
  Lists: 'Whose mail a tenant takes, and whom it writes to.',
  Usage: 'Allowances and counters.',
  Platform: 'What the operator of the deployment does.',
};

const PARAMETERS: JsonObject = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: true,
    description:
      'One key for one message: 1 to 255 printable ASCII characters. Repeat it on every retry. A dry run ignores it ' +
      'and works without.',
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
    example: 'bk-2291-confirm',
  },
  OptionalIdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'Makes the request repeatable: 1 to 255 printable ASCII characters.',
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
    example: 'tenant-acme-1',
  },
};

const HEADERS: JsonObject = {
  'Request-Id': {
    description: 'Id of this request, also in X-Request-Id. Ids that a client sends are ignored.',
    schema: { type: 'string' },
    example: exampleId('req'),
  },
  'RateLimit-Limit': {
    description: 'Requests per minute in the tightest bucket that this request counts in.',
    schema: { type: 'integer' },
    example: 600,
  },
  'RateLimit-Reset': {
    description: 'Seconds until the bucket is full again.',
    schema: { type: 'integer' },
    example: 12,
  },
  'Retry-After': { description: 'Seconds to wait before repeating.', schema: { type: 'integer' }, example: 12 },
  'Idempotent-Replayed': {
    description: '`true` when this is the stored answer of an earlier request with the same key.',
    schema: { type: 'boolean' },
    example: true,
  },
};

function errorExamples(): JsonObject {
  return Object.fromEntries(
    ERROR_CODES.map((code) => {
      const value = wireError(code, exampleId('req'), ERROR_DETAILS[code]);
      return [code, { summary: ERRORS[code].message, value: value as unknown as Json }];
    }),
  );
}

function paths(): JsonObject {
  const out: Record<string, JsonObject> = {};
  for (const id of ROUTE_IDS) {
    const { path, method } = routeSpec(id);
    out[path] = { ...out[path], [method.toLowerCase()]: operation(id) };
  }
  return out;
}

/** The OpenAPI 3.1 document of the whole API. The same input gives the same document, member for member. */
export function buildOpenApi(): JsonObject {
  const routes = paths();
  const schemas = namedSchemas();
  const responses = sharedResponses();
  const allExamples = errorExamples();
  const used = new Set(JSON.stringify([routes, responses]).match(/(?<=#\/components\/examples\/)\w+/g) ?? []);
  const examples = Object.fromEntries(Object.entries(allExamples).filter(([code]) => used.has(code)));
  const names = reachable([routes, responses], schemas);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pylota Mail',
      version: VERSION,
      summary: 'Mail for AI agents and applications.',
      description: DESCRIPTION,
    },
    servers: [
      {
        url: 'https://{api_host}',
        variables: { api_host: { default: 'api.example.com', description: 'Host of the deployment.' } },
      },
    ],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: routes,
    components: {
      securitySchemes: {
        ApiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'pmk_{live|test}_{lookup}_{secret}',
          description:
            'An API key. The names listed at an operation are the permissions it needs. A body has at most ' +
            `${LIMITS.request_body_bytes_max} bytes.`,
        },
      },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses,
      schemas: Object.fromEntries(names.map((name) => [name, schemas.get(name) ?? {}])),
      examples,
    },
  };
}
