import type { PathParam } from '@pmail/contracts/routes/params.ts';
import { bodyIsOptional, ROUTE_IDS, type RouteId, routeSpec } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { expect } from 'vitest';
import { accepted, arrive, inMailbox, letter, waiting } from '../mail.ts';
import { type Call, call, makeKey, paths, plantKey, send, sendBytes, sql } from '../support.ts';
import { FILE, later, operator, type Provocation, type Provoked, sample, somebody, type World } from './world.ts';

/** What is wrong with a request itself: what it names, its key for repetition, its query and body, its cursor. */

const having = (test: (spec: ReturnType<typeof routeSpec>) => boolean): RouteId[] =>
  ROUTE_IDS.filter((id) => test(routeSpec(id)));
const WITH_BODY = having(({ body }) => body !== null);
const WITH_CURSOR = having(({ query }) => 'cursor' in query.shape);
const withParam = (name: PathParam): RouteId[] => having(({ params }) => name in params.shape);
const openTo =
  (level: 'tenant' | 'identity') =>
  (id: RouteId): boolean => {
    const { access } = routeSpec(id);
    return access.kind === 'key' && (access.levels === undefined || access.levels.includes(level));
  };

/** The sample of a route with other path parameters. */
function naming(world: World, route: RouteId, params: Record<string, string>): Call {
  const call = sample(world, route);
  return { ...call, params: { ...call.params, ...params } };
}

const names = (...expected: string[]): Pick<Provocation, 'also'> => ({
  also: ({ details }: Provoked) => expect(paths(details ?? {})).toEqual(expected),
});

const ULID = '01JABCDEFGHJKMNPQRSTVWXYZ0';

/** A malformed id and a well-formed one of nothing, for every route whose path has the parameter. */
function missing(param: PathParam, code: Provocation['code'], prefix: string): Provocation[] {
  return [
    ['malformed', 'nonsense'],
    ['of another kind', `req_${ULID}`],
    ["nothing's", `${prefix}_${ULID}`],
  ].map(([what, id = '']) => ({
    code,
    when: `${param} is ${what}`,
    routes: withParam(param),
    provoke: async (world, route) => send(await operator(), route, naming(world, route, { [param]: id })),
  }));
}

/** Something that is there, but not in the mailbox that the path names. */
function elsewhere(param: PathParam, code: Provocation['code'], of: (world: World) => string): Provocation {
  return {
    code,
    when: `${param} is that of another mailbox`,
    routes: withParam(param),
    provoke: (world, route) => send(world.key, route, naming(world, route, { [param]: of(world) })),
  };
}

const CHANGING: RouteId[] = ['messages.send', 'messages.update', 'messages.cancel', 'messages.resolve'];

const identities: Provocation[] = [
  ...missing('identity_id', 'identity_not_found', 'idn'),
  {
    code: 'identity_not_found',
    when: "it is another tenant's",
    routes: withParam('identity_id').filter(openTo('tenant')),
    provoke: (world, route) => send(world.key, route, naming(world, route, { identity_id: world.other.ann })),
  },
  {
    code: 'identity_not_found',
    when: 'the key is that of another identity',
    routes: withParam('identity_id').filter(openTo('identity')),
    provoke: async (world, route) => {
      const key = await plantKey({
        level: 'identity',
        tenant_id: world.tenant,
        identity_id: world.bob as `idn_${string}`,
      });
      return send(key, route, sample(world, route));
    },
  },
  {
    code: 'identity_not_found',
    when: "it is the system identity and the key no operator's",
    routes: withParam('identity_id').filter(openTo('tenant')),
    provoke: async (world, route) => {
      const system = await theSystem(world);
      return send(world.key, route, naming(world, route, { identity_id: system }));
    },
  },
  {
    code: 'identity_not_found',
    when: 'it is on its way out and would be changed',
    routes: CHANGING,
    provoke: async (world, route) => {
      const leaver = await somebody(world);
      const { id } = await accepted(world.key, leaver);
      await sql("UPDATE identities SET status = 'deleting' WHERE id = ?", leaver);
      return send(world.key, route, naming(world, route, { identity_id: leaver, message_id: id }));
    },
  },
  {
    code: 'identity_not_found',
    when: 'a filter names one out of reach',
    routes: ['events.list'],
    provoke: (world, route) => send(world.key, route, { query: { identity_id: world.other.ann } }),
  },
];

let system: Promise<string> | undefined;

function theSystem(world: World): Promise<string> {
  system ??= somebody(world).then(async (id) => {
    await sql('UPDATE identities SET is_system = 1 WHERE id = ?', id);
    return id;
  });
  return system;
}

/** Of the lab, with permissions that no key of its level can be given. */
let rights: Promise<string> | undefined;

const HELD: RouteId[] = [
  'messages.get',
  'messages.update',
  'messages.raw.get',
  'messages.attachments.get',
  'messages.cancel',
  'messages.resolve',
];

const things: Provocation[] = [
  ...missing('tenant_id', 'tenant_not_found', 'ten'),
  {
    code: 'tenant_not_found',
    when: 'it is another',
    routes: withParam('tenant_id').filter(openTo('tenant')),
    provoke: async (world, route) => {
      rights ??= plantKey({ level: 'tenant', tenant_id: world.tenant });
      return send(await rights, route, naming(world, route, { tenant_id: world.other.tenant }));
    },
  },
  {
    code: 'tenant_not_found',
    when: 'a filter names one out of reach',
    routes: ['events.list'],
    provoke: (world, route) => send(world.key, route, { query: { tenant_id: world.other.tenant } }),
  },
  ...missing('message_id', 'message_not_found', 'msg'),
  elsewhere('message_id', 'message_not_found', ({ bobsMessage }) => bobsMessage),
  {
    code: 'message_not_found',
    when: 'it is held back and the key may not review it',
    routes: HELD,
    provoke: async (world, route) => {
      const id = await arrive(world.ann, `From: x@example.org\nSubject: ${crypto.randomUUID()}\n\nspam`);
      await inMailbox(world.ann, "UPDATE messages SET status = 'quarantined' WHERE id = ?", id);
      const permissions = ['messages:read', 'messages:send', 'messages:write', 'attachments:read'] as const;
      const key = await makeKey(world.root, {
        level: 'tenant',
        tenant_id: world.tenant,
        permissions: [...permissions],
      });
      return send(key, route, naming(world, route, { message_id: id }));
    },
  },
  {
    code: 'message_not_found',
    when: 'it came in, and only sent mail can be',
    routes: ['messages.cancel', 'messages.resolve'],
    provoke: (world, route) => send(world.key, route, naming(world, route, { message_id: world.inbound })),
  },
  ...missing('attachment_id', 'attachment_not_found', 'att'),
  {
    code: 'attachment_not_found',
    when: 'it is that of another message',
    routes: ['messages.attachments.get'],
    provoke: async (world, route) => {
      const { id } = await accepted(world.key, world.ann, letter({ attachments: [FILE] }));
      return send(world.key, route, naming(world, route, { message_id: id }));
    },
  },
  ...missing('thread_id', 'thread_not_found', 'thr'),
  elsewhere('thread_id', 'thread_not_found', ({ bobsThread }) => bobsThread),
  ...[
    ['malformed', () => 'nonsense'],
    ["nothing's", () => `thr_${ULID}`],
    ["another mailbox's", ({ bobsThread }: World) => bobsThread],
  ].map(([what, of]): Provocation => {
    const threadOf = of as (world: World) => string;
    return {
      code: 'thread_not_found',
      when: `a message is to continue a thread that is ${String(what)}`,
      routes: ['messages.send'],
      provoke: (world, route) =>
        send(world.key, route, { ...sample(world, route), body: letter({ thread_id: threadOf(world) }) }),
    };
  }),
  ...missing('event_id', 'event_not_found', 'evt'),
  {
    code: 'event_not_found',
    when: "it is another tenant's",
    routes: ['events.get'],
    provoke: async (world, route) => {
      const [event] = await sql('SELECT id FROM event_index WHERE tenant_id = ?', world.other.tenant);
      return send(world.key, route, { params: { event_id: String(event?.['id']) } });
    },
  },
  {
    code: 'event_not_found',
    when: 'the key may not read events of mail',
    routes: ['events.get'],
    provoke: async (world, route) => {
      const [event] = await sql(
        "SELECT id FROM event_index WHERE identity_id = ? AND type LIKE 'message.%'",
        world.ann,
      );
      const key = await makeKey(world.root, {
        level: 'tenant',
        tenant_id: world.tenant,
        permissions: ['webhooks:read'],
      });
      return send(key, route, { params: { event_id: String(event?.['id']) } });
    },
  },
  ...missing('key_id', 'key_not_found', 'key'),
];

const badKeys: [string, string][] = [
  ['empty', ''],
  ['256 characters', 'k'.repeat(256)],
  ['with a control byte', 'a\x01b'],
  ['with a tab', 'a\tb'],
  ['with a delete', 'a\x7fb'],
  ['not ASCII', 'clé'],
];

const idempotency: Provocation[] = [
  {
    code: 'idempotency_key_required',
    when: 'there is none',
    routes: having(({ idempotency: rule }) => rule === 'required'),
    provoke: async (world, route) => send(await operator(), route, { ...sample(world, route), headers: {} }),
  },
  ...badKeys.map(
    ([what, value]): Provocation => ({
      code: 'invalid_idempotency_key',
      when: `it is ${what}`,
      routes: having(({ idempotency: rule }) => rule !== 'none'),
      provoke: async (world, route) =>
        send(await operator(), route, { ...sample(world, route), headers: { 'idempotency-key': value } }),
    }),
  ),
  {
    code: 'idempotency_conflict',
    when: 'it stands for another message',
    routes: ['messages.send'],
    provoke: async (world, route) => {
      const { id } = await accepted(world.key, world.ann, letter(), 'taken');
      const again = {
        ...sample(world, route),
        body: letter({ subject: 'Other' }),
        headers: { 'idempotency-key': 'taken' },
      };
      const response = await send(world.key, route, again);
      const { error } = await response.clone().json<{ error: { details: unknown } }>();
      expect(error.details).toEqual({ original_message_id: id });
      return response;
    },
  },
];

const bodies: Provocation[] = [
  {
    code: 'invalid_request',
    when: 'the query has an unknown name',
    routes: ROUTE_IDS,
    provoke: async (world, route) => {
      const call = sample(world, route);
      return send(await operator(), route, { ...call, query: { ...call.query, nonsense: '1' } });
    },
    ...names('nonsense'),
  },
  {
    code: 'invalid_request',
    when: 'the body is no JSON',
    routes: WITH_BODY,
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      return sendBytes(await operator(), route, '{"a":', call);
    },
    ...names(''),
  },
  {
    code: 'invalid_request',
    when: 'the body is no object',
    routes: WITH_BODY,
    provoke: async (world, route) => send(await operator(), route, { ...sample(world, route), body: [] }),
    ...names(''),
  },
  {
    code: 'invalid_request',
    when: 'the body has an unknown field',
    routes: WITH_BODY,
    provoke: async (world, route) => {
      const call = sample(world, route);
      return send(await operator(), route, { ...call, body: { ...(call.body as object), nonsense: 1 } });
    },
    ...names('nonsense'),
  },
  {
    code: 'invalid_request',
    when: 'there is no body and one is needed',
    routes: WITH_BODY.filter((id) => !bodyIsOptional(routeSpec(id))),
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      return sendBytes(await operator(), route, null, call);
    },
    ...names(''),
  },
  {
    code: 'payload_too_large',
    when: 'it says it has 8 MB',
    routes: WITH_BODY,
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      return sendBytes(await operator(), route, ' '.repeat(8 * 1024 * 1024), call);
    },
    also: ({ details }) => expect(details).toEqual({ limit: LIMITS.request_body_bytes_max }),
  },
  {
    code: 'payload_too_large',
    when: 'it has 8 MB and does not say so',
    routes: ['messages.send'],
    provoke: async (world, route) => {
      const { body: _body, ...call } = sample(world, route);
      const chunk = new Uint8Array(1024 * 1024).fill(32);
      let left = 8;
      const stream = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (left-- > 0) controller.enqueue(chunk);
          else controller.close();
        },
      });
      return sendBytes(world.key, route, stream, call);
    },
  },
];

const cursors: Provocation[] = [
  {
    code: 'cursor_expired',
    when: 'it is over a day old',
    routes: WITH_CURSOR,
    provoke: async (world, route) => {
      const key = await operator();
      const query = { [route === 'threads.get' ? 'messages_limit' : 'limit']: '1' };
      const { next_cursor } = (await call(key, route, { ...sample(world, route), query })) as { next_cursor: string };
      const next = { ...sample(world, route), query: { ...query, cursor: next_cursor } };
      expect((await send(key, route, next)).status).toBe(200);
      return later(LIMITS.cursor_age_ms_max + 60_000, () => send(key, route, next));
    },
  },
  {
    code: 'invalid_request',
    when: 'the cursor was made up',
    routes: WITH_CURSOR,
    provoke: async (world, route) => {
      const call = sample(world, route);
      return send(await operator(), route, { ...call, query: { ...call.query, cursor: 'c_0AAAA' } });
    },
    ...names('cursor'),
  },
];

const states: Provocation[] = [
  {
    code: 'not_cancelable',
    when: 'it has ended',
    routes: ['messages.cancel'],
    provoke: async (world, route) => {
      const { id } = await waiting(world.key, world.ann);
      await call(world.key, 'messages.cancel', { params: { identity_id: world.ann, message_id: id } });
      return send(world.key, route, naming(world, route, { message_id: id }));
    },
    also: ({ details }) => expect(details).toEqual({ status: 'canceled' }),
  },
  {
    code: 'not_uncertain',
    when: 'its status is known',
    routes: ['messages.resolve'],
    provoke: async (world, route) => {
      const { id } = await waiting(world.key, world.ann);
      await call(world.key, 'messages.cancel', { params: { identity_id: world.ann, message_id: id } });
      return send(world.key, route, naming(world, route, { message_id: id }));
    },
    also: ({ details }) => expect(details).toEqual({ status: 'canceled' }),
  },
];

export const requests: Provocation[] = [...identities, ...things, ...idempotency, ...bodies, ...cursors, ...states];
