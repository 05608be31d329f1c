import type { RouteId } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { expect } from 'vitest';
import { suppressAddress } from '../mail.ts';
import { call, makeKey, send } from '../support.ts';
import { missing } from './missing.ts';
import { names, naming, withParam } from './routes.ts';
import { HOOK, operator, type Provocation, sample, type World } from './world.ts';

/** Webhooks, suppressions and lists. */

const ULID = '01JABCDEFGHJKMNPQRSTVWXYZ0';

const NAMING: RouteId[] = ['webhooks.create', 'webhooks.createOfTenant', 'webhooks.update'];
const MAKING: RouteId[] = ['webhooks.create', 'webhooks.createOfTenant'];
const REVEALING: RouteId[] = ['webhooks.createOfTenant', 'webhooks.update'];

let platforms: Promise<string> | undefined;

/** An endpoint of the platform. */
function ofPlatform({ root }: World): Promise<string> {
  platforms ??= call(root, 'webhooks.create', { body: HOOK }).then(({ id }) => id);
  return platforms;
}

const hooks: Provocation[] = [
  ...missing('webhook_id', 'webhook_not_found', 'whk'),
  {
    code: 'webhook_not_found',
    when: "it is the platform's and the key no operator's",
    routes: withParam('webhook_id'),
    provoke: async (world, route) =>
      send(world.key, route, naming(world, route, { webhook_id: await ofPlatform(world) })),
  },
  {
    code: 'webhook_not_found',
    when: "it is another tenant's",
    routes: withParam('webhook_id'),
    provoke: (world, route) => send(world.other.key, route, sample(world, route)),
  },
  {
    code: 'tenant_not_found',
    when: 'endpoints are asked for of one out of reach',
    routes: ['webhooks.list'],
    provoke: (world, route) => send(world.key, route, { query: { tenant_id: world.other.tenant } }),
  },
  {
    code: 'identity_not_found',
    when: 'an endpoint names one that is not there',
    routes: NAMING,
    provoke: async (world, route) => {
      const usual = sample(world, route);
      return send(await operator(), route, {
        ...usual,
        body: { ...(usual.body as object), identity_ids: [`idn_${ULID}`] },
      });
    },
  },
  {
    code: 'identity_not_found',
    when: "an endpoint of a tenant names another's",
    routes: NAMING.filter((id) => id !== 'webhooks.create'),
    provoke: async (world, route) => {
      const usual = sample(world, route);
      const body = { ...(usual.body as object), identity_ids: [world.ann, world.other.ann] };
      return send(await operator(), route, { ...usual, body });
    },
  },
  {
    code: 'permission_denied',
    when: 'an endpoint would be told of mail that the key may not read',
    routes: REVEALING,
    provoke: async (world, route) => {
      const key = await makeKey(world.root, {
        level: 'tenant',
        tenant_id: world.tenant,
        permissions: ['webhooks:manage'],
      });
      const usual = sample(world, route);
      return send(key, route, { ...usual, body: { ...(usual.body as object), events: ['message.received'] } });
    },
    also: ({ details }) => expect(details).toEqual({ required: 'messages:read' }),
  },
  {
    code: 'invalid_request',
    when: 'the URL of an endpoint leads to a private place',
    routes: NAMING,
    provoke: async (world, route) => {
      const usual = sample(world, route);
      return send(await operator(), route, { ...usual, body: { ...(usual.body as object), url: 'https://10.0.0.1/' } });
    },
    ...names('url'),
  },
  {
    code: 'webhook_limit_reached',
    when: 'there are as many as may be',
    routes: MAKING,
    provoke: async (world, route) => {
      const params = { tenant_id: world.other.tenant };
      const body = { ...HOOK, description: 'one of many' };
      for (let n = 0; n <= LIMITS.webhook_endpoints_per_owner_max; n++) {
        const response = await send(world.root, route, { params, body });
        if (response.status !== 201) return response;
      }
      throw new Error('there is no end');
    },
    also: ({ details }) => expect(details).toEqual({ limit: LIMITS.webhook_endpoints_per_owner_max }),
  },
  ...[
    ['malformed', () => 'nonsense'],
    ["nothing's", () => `evt_${ULID}`],
    ['of a type that it is not told of', ({ event }: World) => event],
  ].map(([what, of]): Provocation => {
    const eventOf = of as (world: World) => string;
    return {
      code: 'event_not_found',
      when: `an event to replay is ${String(what)}`,
      routes: ['webhooks.replay'],
      provoke: (world, route) => {
        const body = { event_ids: [eventOf(world)] };
        return send(world.key, route, { ...sample(world, route), body });
      },
    };
  }),
];

const suppressions: Provocation[] = [
  ...['nonsense', '@example.net', 'never@example.net'].map(
    (address): Provocation => ({
      code: 'suppression_not_found',
      when: `${address} is not on the list`,
      routes: withParam('address'),
      provoke: async (world, route) => send(await operator(), route, naming(world, route, { address })),
    }),
  ),
  {
    code: 'suppression_not_found',
    when: 'it is on the list of another tenant',
    routes: withParam('address'),
    provoke: async (world, route) =>
      send(await operator(), route, naming(world, route, { tenant_id: world.other.tenant })),
  },
  {
    code: 'invalid_request',
    when: 'somebody complained and nobody answers for the removal',
    routes: ['suppressions.delete'],
    provoke: async (world, route) => {
      await suppressAddress(world.tenant, 'cross@example.net', 'complaint');
      return send(world.key, route, naming(world, route, { address: 'Cross@Example.NET' }));
    },
    ...names('confirm_complaint_removal'),
  },
  {
    code: 'invalid_request',
    when: 'what is to be suppressed is no address',
    routes: ['suppressions.create'],
    provoke: (world, route) =>
      send(world.key, route, { ...sample(world, route), body: { address: '@example.net', reason: 'manual' } }),
    ...names('address'),
  },
];

const lists: Provocation[] = [
  ...[{ direction: 'both' }, { direction: 'Send' }, { kind: 'deny' }].map(
    (word): Provocation => ({
      code: 'route_not_found',
      when: `there is no list for ${Object.values(word).join()}`,
      routes: withParam('direction'),
      provoke: async (world, route) => send(await operator(), route, naming(world, route, word)),
    }),
  ),
  ...['nonsense', '@', 'never@example.net', '@never.example.net'].map(
    (entry): Provocation => ({
      code: 'list_entry_not_found',
      when: `${entry} is not on the list`,
      routes: ['lists.get', 'lists.delete'],
      provoke: async (world, route) => send(await operator(), route, naming(world, route, { entry })),
    }),
  ),
  {
    code: 'list_entry_not_found',
    when: 'it is on another list',
    routes: ['lists.get', 'lists.delete'],
    provoke: async (world, route) => send(await operator(), route, naming(world, route, { kind: 'block' })),
  },
  {
    code: 'invalid_request',
    when: 'what is to be put on a list is neither an address nor a domain',
    routes: ['lists.put'],
    provoke: (world, route) => send(world.key, route, naming(world, route, { entry: 'example.net' })),
    ...names('entry'),
  },
];

export const subscriptions: Provocation[] = [...hooks, ...suppressions, ...lists];
