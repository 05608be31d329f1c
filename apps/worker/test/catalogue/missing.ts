import type { PathParam } from '@pmail/contracts/routes/params.ts';
import type { RouteId } from '@pmail/contracts/routes.ts';
import { accepted, arrive, inMailbox, letter } from '../mail.ts';
import { makeKey, plantKey, send, sql } from '../support.ts';
import { naming, openTo, withParam } from './routes.ts';
import { FILE, operator, type Provocation, sample, somebody, type World } from './world.ts';

/** Things that are not there, or not for the key that asks: both look alike. */

const ULID = '01JABCDEFGHJKMNPQRSTVWXYZ0';

/** A malformed id and a well-formed one of nothing, for every route whose path has the parameter. */
export function missing(param: PathParam, code: Provocation['code'], prefix: string): Provocation[] {
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

const ANSWERING: RouteId[] = ['messages.reply', 'messages.reply_all', 'messages.forward'];
const CHANGING: RouteId[] = ['messages.send', ...ANSWERING, 'messages.update', 'messages.cancel', 'messages.resolve'];

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
        identity_id: world.bob,
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
  ...ANSWERING,
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
      return send(key, route, naming(world, route, { identity_id: world.ann, message_id: id }));
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
  ...['nonsense', 'Cursor', 'keys'].map(
    (purpose): Provocation => ({
      code: 'route_not_found',
      when: `there are no keys for ${purpose}`,
      routes: withParam('purpose'),
      provoke: async (world, route) => send(await operator(), route, naming(world, route, { purpose })),
    }),
  ),
  ...[
    ['is none', () => 'nonsense'],
    ['was changed', ({ link }: World) => `${link.slice(0, -1)}${link.endsWith('A') ? 'B' : 'A'}`],
  ].map(([what, of]): Provocation => {
    const tokenOf = of as (world: World) => string;
    return {
      code: 'attachment_not_found',
      when: `the token ${String(what)}`,
      routes: withParam('token'),
      provoke: (world, route) => send(null, route, naming(world, route, { token: tokenOf(world) })),
    };
  }),
];

export const missingThings: Provocation[] = [...identities, ...things];
