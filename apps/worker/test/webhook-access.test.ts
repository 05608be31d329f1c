import type { Permission } from '@pmail/contracts/permissions.ts';
import type { RouteId } from '@pmail/contracts/routes.ts';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Lab, makeLab, person } from './mail.ts';
import { Net } from './net.ts';
import { keepStorage } from './storage.ts';
import { type Call, call, deploy, makeKey, plantKey, refusal, send, sql } from './support.ts';

/** Who may do what with webhooks, and whose they are. */

keepStorage();

let root: string;
let lab: Lab;
let other: Lab;
/** An endpoint of the lab, of the other tenant, and of the platform; each for everything. */
let own: string;
let foreign: string;
let platform: string;

const BODY = { url: 'https://hooks.acme.com/in', events: ['*'] };

beforeAll(async () => {
  vi.restoreAllMocks();
  new Net().install();
  root = await deploy();
  lab = await makeLab(root);
  other = await makeLab(root, 'other');
  own = (await call(lab.key, 'webhooks.createOfTenant', { params: { tenant_id: lab.tenant }, body: BODY })).id;
  foreign = (await call(other.key, 'webhooks.createOfTenant', { params: { tenant_id: other.tenant }, body: BODY })).id;
  platform = (await call(root, 'webhooks.create', { body: BODY })).id;
});
beforeEach(() => {
  vi.restoreAllMocks();
  new Net().install();
});

const BY_ID: RouteId[] = [
  'webhooks.get',
  'webhooks.update',
  'webhooks.delete',
  'webhooks.rotateSecret',
  'webhooks.test',
  'webhooks.deliveries.list',
  'webhooks.replay',
];
const of = (route: RouteId, webhook_id: string): Call => {
  const bodies: Partial<Record<RouteId, object>> = {
    'webhooks.update': { enabled: false },
    'webhooks.replay': { since: '2026-01-01T00:00:00Z' },
    'webhooks.rotateSecret': {},
  };
  const body = bodies[route];
  return { params: { webhook_id }, ...(body === undefined ? {} : { body }) };
};

const rows = () => sql('SELECT id, url, enabled, secret_enc, updated_at FROM webhook_endpoints ORDER BY id');

describe('a tenant key', () => {
  test.each(BY_ID)('%s finds neither those of others nor those of the platform', async (route) => {
    const before = await rows();
    const answers = await Promise.all(
      [foreign, platform, 'whk_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense', `${own}x`].map(async (id) => {
        const response = await send(lab.key, route, of(route, id));
        const { error } = await response.json<{ error: Record<string, unknown> }>();
        return { ...error, request_id: null, status: response.status };
      }),
    );
    expect(answers[0]).toMatchObject({ code: 'webhook_not_found', status: 404 });
    // Not there, not yours, and not even an id: all the same, word for word.
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await rows()).toEqual(before);
  });

  test('lists its own alone, whatever it asks for', async () => {
    const ids = async (query: Record<string, string> = {}) =>
      (await call(lab.key, 'webhooks.list', { query })).data.map(({ id }) => id);
    expect(await ids()).toEqual([own]);
    expect(await ids({ tenant_id: lab.tenant })).toEqual([own]);
    for (const tenant_id of [other.tenant, 'ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'x']) {
      expect(await refusal(lab.key, 'webhooks.list', { query: { tenant_id } })).toEqual({ code: 'tenant_not_found' });
    }
    for (const route of ['webhooks.listOfTenant', 'webhooks.createOfTenant'] as const) {
      const body = route === 'webhooks.createOfTenant' ? { body: BODY } : {};
      expect(await refusal(lab.key, route, { params: { tenant_id: other.tenant }, ...body })).toEqual({
        code: 'tenant_not_found',
      });
    }
  });

  test('makes none of the platform', async () => {
    expect(await refusal(lab.key, 'webhooks.create', { body: BODY })).toEqual({ code: 'scope_denied' });
  });
});

test('a platform key sees and reaches all of them', async () => {
  const ids = (await call(root, 'webhooks.list')).data.map(({ id }) => id);
  expect(new Set(ids)).toEqual(new Set([own, foreign, platform]));
  const { data } = await call(root, 'webhooks.list', { query: { tenant_id: other.tenant } });
  expect(data.map(({ id }) => id)).toEqual([foreign]);
  for (const tenant_id of ['ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'x'])
    expect(await refusal(root, 'webhooks.list', { query: { tenant_id } })).toEqual({ code: 'tenant_not_found' });
  expect(await call(root, 'webhooks.get', { params: { webhook_id: platform } })).toMatchObject({
    scope: 'platform',
    tenant_id: null,
  });
  expect(await call(root, 'webhooks.get', { params: { webhook_id: own } })).toMatchObject({ scope: 'tenant' });
});

describe('an identity key', () => {
  const READS: RouteId[] = ['webhooks.get', 'webhooks.deliveries.list'];
  let key: string;

  beforeAll(async () => {
    key = await plantKey({ level: 'identity', tenant_id: lab.tenant, identity_id: lab.ann });
  });

  test('reads those of its tenant, and finds no other', async () => {
    expect((await call(key, 'webhooks.list')).data.map(({ id }) => id)).toEqual([own]);
    const { data } = await call(key, 'webhooks.listOfTenant', { params: { tenant_id: lab.tenant } });
    expect(data.map(({ id }) => id)).toEqual([own]);
    expect(await call(key, 'webhooks.get', of('webhooks.get', own))).toMatchObject({ id: own });
    for (const route of READS) {
      for (const id of [foreign, platform]) {
        expect(await refusal(key, route, of(route, id)), route).toEqual({ code: 'webhook_not_found' });
      }
    }
    const elsewhere = { params: { tenant_id: other.tenant } };
    expect(await refusal(key, 'webhooks.listOfTenant', elsewhere)).toEqual({ code: 'tenant_not_found' });
  });

  test('changes nothing, whatever it holds', async () => {
    const before = await rows();
    const requests: [RouteId, Call][] = [
      ...BY_ID.filter((route) => !READS.includes(route)).map((route): [RouteId, Call] => [route, of(route, own)]),
      ['webhooks.create', { body: BODY }],
      ['webhooks.createOfTenant', { params: { tenant_id: lab.tenant }, body: BODY }],
    ];
    for (const [route, input] of requests) {
      expect(await refusal(key, route, input), route).toEqual({ code: 'scope_denied' });
    }
    expect(await rows()).toEqual(before);
  });
});

describe('what the types of an endpoint reveal', () => {
  const keyWith = (...permissions: Permission[]) =>
    makeKey(root, { level: 'tenant', tenant_id: lab.tenant, permissions: ['webhooks:manage', ...permissions] });

  const cases: [string[], Permission[], Permission | null][] = [
    [['identity.paused', 'suppression.created'], [], null],
    [['message.sent'], [], 'messages:read'],
    [['identity.paused', 'message.sent'], [], 'messages:read'],
    [['message.sent'], ['quarantine:review'], 'messages:read'],
    [['message.sent', 'message.delivered'], ['messages:read'], null],
    [['message.quarantined'], ['messages:read'], 'quarantine:review'],
    [['message.quarantined'], ['quarantine:review'], 'messages:read'],
    [['message.quarantined'], ['messages:read', 'quarantine:review'], null],
    [['*'], [], 'messages:read'],
    [['*'], ['messages:read'], 'quarantine:review'],
    [['*', 'identity.paused'], ['messages:read'], 'quarantine:review'],
    [['*'], ['messages:read', 'quarantine:review'], null],
  ];

  test.each(cases)('%j by a key with %j: %s', async (events, permissions, required) => {
    const key = await keyWith(...permissions);
    const made = { params: { tenant_id: lab.tenant }, body: { ...BODY, events } };
    const subject = await call(lab.key, 'webhooks.createOfTenant', { ...made, status: 201 });
    const params = { webhook_id: subject.id };
    const bare = await call(lab.key, 'webhooks.createOfTenant', {
      params: { tenant_id: lab.tenant },
      body: { ...BODY, events: ['identity.paused'] },
    });
    const requests: [RouteId, Call][] = [
      ['webhooks.createOfTenant', made],
      ['webhooks.update', { params, body: { events } }],
      ['webhooks.update', { params, body: { url: 'https://other.acme.com/' } }],
      ['webhooks.update', { params: { webhook_id: bare.id }, body: { events } }],
      ['webhooks.replay', { params, body: { since: '2026-01-01T00:00:00Z' } }],
    ];
    const ids: string[] = [subject.id, bare.id];
    for (const [route, input] of requests) {
      const response = await send(key, route, input);
      const answer = await response.json<{ id?: string; error?: unknown }>();
      if (required === null) expect(response.status, `${route} ${JSON.stringify(input)}`).toBeLessThan(300);
      else expect(answer.error).toMatchObject({ code: 'permission_denied', details: { required } });
      if (answer.id !== undefined) ids.push(answer.id);
    }
    // What shows nothing of it stays open: text for people, on and off, a test.
    const text = { params, body: { description: 'x' } };
    expect((await send(key, 'webhooks.update', text)).status).toBe(200);
    expect((await send(key, 'webhooks.test', { params })).status).toBe(200);
    for (const webhook_id of new Set(ids)) await call(root, 'webhooks.delete', { params: { webhook_id } });
  });

  test('needs the permission to manage before anything else, and to read for reading', async () => {
    const reader = await makeKey(root, {
      level: 'tenant',
      tenant_id: lab.tenant,
      permissions: ['webhooks:read', 'messages:read', 'quarantine:review'],
    });
    for (const route of ['webhooks.get', 'webhooks.deliveries.list'] as const) {
      expect((await send(reader, route, of(route, own))).status).toBe(200);
    }
    for (const route of BY_ID.filter((id) => id !== 'webhooks.get' && id !== 'webhooks.deliveries.list')) {
      expect(await refusal(reader, route, of(route, own))).toEqual({
        code: 'permission_denied',
        required: 'webhooks:manage',
      });
    }
    const manager = await keyWith();
    expect((await call(manager, 'webhooks.list')).data).toHaveLength(1);
  });
});

describe('the identities that an endpoint names', () => {
  const make = (key: string, tenantId: string | null, identity_ids: string[]) =>
    tenantId === null
      ? send(key, 'webhooks.create', { body: { ...BODY, identity_ids } })
      : send(key, 'webhooks.createOfTenant', { params: { tenant_id: tenantId }, body: { ...BODY, identity_ids } });

  async function codeOf(response: Response): Promise<string | null> {
    const answer = await response.json<{ id?: string; error?: { code: string } }>();
    if (answer.id !== undefined) await call(root, 'webhooks.delete', { params: { webhook_id: answer.id } });
    return answer.error?.code ?? null;
  }

  test('are those of its tenant that are there', async () => {
    const system = await person(root, lab.tenant, 'machine');
    await sql('UPDATE identities SET is_system = 1 WHERE id = ?', system);
    const leaver = await person(root, lab.tenant, 'leaver');
    await sql("UPDATE identities SET status = 'deleted' WHERE id = ?", leaver);
    const paused = await person(root, lab.tenant, 'paused');
    await sql("UPDATE identities SET status = 'paused' WHERE id = ?", paused);
    const nobody = 'idn_01JABCDEFGHJKMNPQRSTVWXYZ0';
    const inTenant: [string[], string | null][] = [
      [[lab.ann], null],
      [[lab.ann, paused], null],
      [[other.ann], 'identity_not_found'],
      [[lab.ann, other.ann], 'identity_not_found'],
      [[nobody], 'identity_not_found'],
      [['nonsense'], 'identity_not_found'],
      [[leaver], 'identity_not_found'],
      [[system], 'identity_not_found'],
    ];
    for (const key of [lab.key, root]) {
      for (const [ids, expected] of inTenant) {
        expect(await codeOf(await make(key, lab.tenant, ids)), JSON.stringify(ids)).toBe(expected);
        const change = { params: { webhook_id: own }, body: { identity_ids: ids } };
        expect(await codeOf(await send(key, 'webhooks.update', { ...change, headers: {} }).then(keep)), 'PATCH').toBe(
          expected,
        );
      }
    }
    const ofPlatform: [string[], string | null][] = [
      [[lab.ann, other.ann, system], null],
      [[nobody], 'identity_not_found'],
      [[leaver], 'identity_not_found'],
    ];
    for (const [ids, expected] of ofPlatform) expect(await codeOf(await make(root, null, ids))).toBe(expected);
  });
});

/** The answer to a change without the id, so that its endpoint stays. */
async function keep(response: Response): Promise<Response> {
  const { id: _id, ...rest } = await response.json<Record<string, unknown>>();
  return Response.json(rest);
}
