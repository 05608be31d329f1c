import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { type Handlers, ROUTE_IDS, type RouteId } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { expect, vi } from 'vitest';
import type { RequestContext } from '../../src/http/context.ts';
import { createApp } from '../../src/http/router.ts';
import worker, { IdentityMailbox, TenantQuota } from '../../src/index.ts';
import { accepted, atRest, inMailbox, letter, mailboxRemote } from '../mail.ts';
import { addDomain, type Call, call, requestOf, send, sql } from '../support.ts';
import { KEYED } from './access.ts';
import { FILE, operator, type Provocation, sample, somebody, type World, withoutPatience } from './world.ts';

/** Faults that are ours or the platform's. */

const broken: Handlers<RequestContext> = Object.fromEntries(
  ROUTE_IDS.map((id) => [id, () => Promise.reject(new Error('secret of the house'))]),
) as never;
const brokenApp = createApp(broken);

/** The method of an object that a route calls. */
const OBJECT_CALLS = {
  'messages.send': 'submit',
  'messages.reply': 'submit',
  'messages.reply_all': 'submit',
  'messages.forward': 'submit',
  'messages.list': 'listMessages',
  'messages.get': 'getMessage',
  'messages.update': 'updateMessage',
  'messages.cancel': 'cancel',
  'messages.resolve': 'resolve',
  'messages.raw.get': 'rawLocation',
  'messages.attachments.get': 'attachmentLocation',
  'links.get': 'attachmentLocation',
  'platform.ledger.rebuild': 'rebuildLedger',
  'threads.list': 'listThreads',
  'threads.get': 'getThread',
  'events.list': 'readEvent',
  'events.get': 'readEvent',
} as const satisfies Partial<Record<RouteId, keyof IdentityMailbox>>;

const CALLING = Object.keys(OBJECT_CALLS) as (keyof typeof OBJECT_CALLS)[];

/** A request that makes the route call its object. */
function calling(world: World, route: RouteId): Call {
  const usual = sample(world, route);
  return route === 'events.list' ? { ...usual, query: { identity_id: world.ann, include: 'data' } } : usual;
}

async function whileAway<T>(spy: { mockRestore: () => void }, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } finally {
    spy.mockRestore();
  }
}

const domainInUse: Provocation = {
  code: 'domain_in_use',
  when: 'a zone would go whose domains are still connected',
  routes: ['tenants.update'],
  provoke: async (world, route) => {
    const zones = { policy: { domains: { cloudflare_zones: ['zone.example'] } } };
    const params = { tenant_id: world.other.tenant };
    await call(world.root, route, { params, body: zones });
    await addDomain(world.other.tenant, 'mail.zone.example', { kind: 'zone', method: 'cloudflare_zone' });
    return send(world.root, route, { params, body: { policy: { domains: { cloudflare_zones: [] } } } });
  },
};

const step = (expected: string): Pick<Provocation, 'also'> => ({
  also: ({ details }) => expect(details).toEqual({ step: expected }),
});

let without: Promise<string> | undefined;

/** Somebody whose mailbox the cron has not made yet. */
function unmade(world: World): Promise<string> {
  without ??= somebody(world).then(async (id) => {
    await sql("UPDATE identities SET mailbox_do_id = '' WHERE id = ?", id);
    return id;
  });
  return without;
}

const unavailable: Provocation[] = [
  {
    code: 'unavailable',
    when: 'settings are missing',
    routes: ROUTE_IDS,
    provoke: async (world, route) => {
      const bare = { ...env, PM_MASTER_KEY: undefined as never, PM_HASH_KEY: 'c2hvcnQ=', PM_API_HOST: '' };
      return worker.fetch(
        requestOf(await operator(), route, sample(world, route)) as never,
        bare,
        createExecutionContext(),
      );
    },
    also: ({ details }) => expect(details).toEqual({ config_invalid: ['PM_API_HOST', 'PM_MASTER_KEY', 'PM_HASH_KEY'] }),
  },
  {
    code: 'unavailable',
    when: 'the directory is down',
    routes: [...KEYED, 'links.get'],
    provoke: async (world, route) => {
      const key = await operator();
      const down = vi.spyOn(env.DB, 'batch').mockRejectedValue(new Error('D1_ERROR: Network connection lost.'));
      return whileAway(down, () => send(key, route, sample(world, route)));
    },
  },
  {
    code: 'unavailable',
    when: 'the directory does not answer in time',
    routes: KEYED,
    provoke: async (world, route) => {
      const key = await operator();
      const hung = vi.spyOn(env.DB, 'batch').mockReturnValue(new Promise(() => undefined));
      const { directory_deadline_ms: ms } = LIMITS;
      return whileAway(hung, () => withoutPatience(ms, () => send(key, route, sample(world, route))));
    },
    ...step('directory'),
  },
  {
    code: 'unavailable',
    when: 'the message cannot be put in the object store',
    routes: ['messages.send'],
    provoke: (world, route) => {
      const down = vi.spyOn(env.BLOBS, 'put').mockRejectedValue(new Error('put: internal error (10001)'));
      return whileAway(down, () => send(world.key, route, sample(world, route)));
    },
    ...step('store'),
  },
  {
    code: 'unavailable',
    when: 'the mailbox cannot enter itself among those with work',
    routes: ['messages.send'],
    provoke: async (world, route) => {
      const id = await somebody(world);
      await atRest(id);
      // With nothing left to do, a poke takes back the entry that the mailbox made when it was created.
      const { stub, call: context } = await mailboxRemote(id);
      expect(await stub.poke(context)).toEqual({ work: false });
      const prepare = env.DB.prepare.bind(env.DB);
      const down = vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
        if (query.includes('mailbox_work')) throw new Error('D1_ERROR: Network connection lost.');
        return prepare(query);
      });
      const response = await whileAway(down, () =>
        send(world.key, route, { ...sample(world, route), params: { identity_id: id } }),
      );
      expect(await inMailbox(id, 'SELECT id FROM messages')).toEqual([]);
      return response;
    },
    ...step('registry'),
  },
  {
    code: 'unavailable',
    when: 'the quota is away',
    routes: ['messages.send'],
    provoke: (world, route) => {
      const down = vi.spyOn(TenantQuota.prototype, 'reserve').mockImplementation(() => {
        throw new Error('away');
      });
      return whileAway(down, () => send(world.key, route, sample(world, route)));
    },
    ...step('quota'),
  },
  {
    code: 'unavailable',
    when: 'the object store does not answer',
    routes: ['messages.get', 'messages.raw.get', 'messages.attachments.get', 'links.get'],
    provoke: (world, route) => {
      const text = 'get: We encountered an internal error. Please try again. (10001)';
      const down = vi.spyOn(env.BLOBS, 'get').mockRejectedValue(new Error(text));
      const query: Record<string, string> = route === 'messages.get' ? { include: 'headers' } : {};
      return whileAway(down, () => send(world.key, route, { ...sample(world, route), query }));
    },
  },
  {
    code: 'unavailable',
    when: 'the mailbox has not been made yet',
    routes: CALLING.filter((id) => !id.startsWith('events.') && id !== 'links.get'),
    provoke: async (world, route) => {
      const usual = sample(world, route);
      return send(await operator(), route, { ...usual, params: { ...usual.params, identity_id: await unmade(world) } });
    },
    ...step('mailbox'),
  },
];

const gone: Provocation[] = [
  {
    code: 'raw_expired',
    when: 'it was deleted',
    routes: ['messages.raw.get'],
    provoke: async (world, route) => {
      const { id } = await accepted(world.key, world.ann);
      await env.BLOBS.delete(`t/${world.tenant}/i/${world.ann}/out/${id}.eml`);
      return send(world.key, route, { params: { identity_id: world.ann, message_id: id } });
    },
  },
  {
    code: 'unavailable',
    when: 'the bytes of a file are still on their way',
    routes: ['messages.attachments.get'],
    provoke: async (world, route) => {
      const { id, attachments } = await accepted(world.key, world.ann, letter({ attachments: [FILE] }));
      const att = attachments[0]?.id ?? '';
      await env.BLOBS.delete(`t/${world.tenant}/i/${world.ann}/out/${id}/a/${att}`);
      return send(world.key, route, { params: { identity_id: world.ann, message_id: id, attachment_id: att } });
    },
    ...step('attachment'),
  },
];

/** Sends a request to an object that does not answer before the deadline. */
async function impatient(
  spy: { mockRestore: () => void },
  ms: number,
  run: () => Promise<Response>,
  gate: PromiseWithResolvers<void>,
): Promise<Response> {
  try {
    return await withoutPatience(ms, run);
  } finally {
    gate.resolve();
    spy.mockRestore();
  }
}

const timeouts: Provocation[] = [
  {
    code: 'timeout',
    when: 'the mailbox is slow',
    routes: CALLING,
    provoke: async (world, route) => {
      const gate = Promise.withResolvers<void>();
      const method = OBJECT_CALLS[route as keyof typeof OBJECT_CALLS];
      const spy = vi.spyOn(IdentityMailbox.prototype, method).mockReturnValue(gate.promise as never);
      const long = method === 'submit' || method === 'rebuildLedger';
      const ms = long ? LIMITS.submit_deadline_ms : LIMITS.object_call_deadline_ms;
      const key = await operator();
      return impatient(spy, ms, () => send(key, route, calling(world, route)), gate);
    },
    also: ({ details }) => expect(['object', 'submit', 'rebuild']).toContain(details?.['step']),
  },
  {
    code: 'timeout',
    when: 'the quota is slow',
    routes: ['usage.get'],
    provoke: async (world, route) => {
      const gate = Promise.withResolvers<void>();
      const spy = vi.spyOn(TenantQuota.prototype, 'usage').mockReturnValue(gate.promise as never);
      return impatient(spy, LIMITS.object_call_deadline_ms, () => send(world.key, route), gate);
    },
    ...step('object'),
  },
  {
    code: 'timeout',
    when: 'the quota of a new tenant is slow',
    routes: ['tenants.create'],
    provoke: async (world, route) => {
      const gate = Promise.withResolvers<void>();
      const spy = vi.spyOn(TenantQuota.prototype, 'init').mockReturnValue(gate.promise as never);
      const late = { body: { slug: 'late', name: 'Late', mode: 'test' } };
      return impatient(spy, LIMITS.object_call_deadline_ms, () => send(world.root, route, late), gate);
    },
    ...step('object'),
  },
];

const internal: Provocation[] = [
  {
    code: 'internal_error',
    when: 'a handler throws',
    routes: ROUTE_IDS,
    provoke: async (world, route) => {
      const request = requestOf(await operator(), route, sample(world, route));
      const response = await brokenApp.fetch(request, env, createExecutionContext());
      expect(await response.clone().text()).not.toContain('secret');
      return response;
    },
    also: ({ details }) => expect(details).toBeUndefined(),
  },
  {
    code: 'internal_error',
    when: "the mailbox is another's",
    routes: CALLING,
    provoke: async (world, route) => {
      const owner = sample(world, route).params?.['identity_id'] ?? '';
      const [row] = await sql('SELECT mailbox_do_id FROM identities WHERE id = ?', owner);
      const [bobs] = await sql('SELECT mailbox_do_id FROM identities WHERE id = ?', world.bob);
      await sql('UPDATE identities SET mailbox_do_id = ? WHERE id = ?', bobs?.['mailbox_do_id'] ?? '', owner);
      try {
        return await send(await operator(), route, calling(world, route));
      } finally {
        await sql('UPDATE identities SET mailbox_do_id = ? WHERE id = ?', row?.['mailbox_do_id'] ?? '', owner);
      }
    },
    ...step('object'),
  },
];

export const faults: Provocation[] = [domainInUse, ...unavailable, ...gone, ...timeouts, ...internal];
