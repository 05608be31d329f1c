import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { keyed, type Lab, makeLab } from './mail.ts';
import { Net } from './net.ts';
import { audited, call, deploy, paths, refusal, send, sql, statuses } from './support.ts';

/** Webhook endpoints over HTTP: making, showing, changing and deleting them. */

let root: string;
let lab: Lab;

beforeEach(async () => {
  root = await deploy();
  lab = await makeLab(root);
  new Net().install();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const URL = 'https://hooks.acme.com/in';
const OTHER = 'https://other.acme.com/in';
const params = () => ({ tenant_id: lab.tenant });

type Made = Awaited<ReturnType<typeof make>>;

async function make(body: object = {}, key = lab.key) {
  const full = { url: URL, events: ['message.sent'], ...body };
  return call(key, 'webhooks.createOfTenant', { params: params(), body: full, status: 201 });
}

const get = (id: string, key = lab.key) => call(key, 'webhooks.get', { params: { webhook_id: id } });
const update = (id: string, body: object) => call(lab.key, 'webhooks.update', { params: { webhook_id: id }, body });

function withoutSecret({ secret: _secret, ...rest }: Made): object {
  return rest;
}

describe('an endpoint', () => {
  test('is made with its secret, and shown without it from then on', async () => {
    const made = await make({
      events: ['message.sent', 'message.sent', 'identity.paused'],
      identity_ids: [lab.ann, lab.bob, lab.ann],
      description: 'the desk',
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^whk_/) as string,
      scope: 'tenant',
      tenant_id: lab.tenant,
      url: URL,
      events: ['message.sent', 'identity.paused'],
      identity_ids: [lab.ann, lab.bob],
      description: 'the desk',
      enabled: true,
      disabled_reason: null,
      created_at: expect.any(String) as string,
      updated_at: made.created_at,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) as string,
    });
    expect(await get(made.id)).toEqual(withoutSecret(made));
    const { data } = await call(lab.key, 'webhooks.listOfTenant', { params: params() });
    expect(data).toEqual([withoutSecret(made)]);
    expect(await audited(made.id)).toEqual(['webhook.create']);
  });

  test('has a secret of its own, which is stored sealed and nowhere else', async () => {
    const made = await Promise.all([make(), make()]);
    const replayed = { params: params(), body: { url: URL, events: ['message.sent'] }, headers: keyed('one') };
    const keyedOne = await call(lab.key, 'webhooks.createOfTenant', replayed);
    const again = await call(lab.key, 'webhooks.createOfTenant', replayed);
    expect(again).toEqual({ ...withoutSecret(keyedOne), secret_replayed: false });
    const turned = await call(lab.key, 'webhooks.rotateSecret', {
      params: { webhook_id: keyedOne.id },
      body: {},
      headers: keyed('two'),
    });
    const secrets = [...made, keyedOne, turned].map(({ secret }) => secret ?? '');
    expect(new Set(secrets).size).toBe(4);
    const tables = await sql(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'",
    );
    expect(tables.map(({ name }) => name)).toContain('idempotency_records');
    for (const { name } of tables) {
      const text = JSON.stringify(await sql(`SELECT * FROM ${String(name)}`));
      for (const secret of secrets) expect(text, String(name)).not.toContain(secret.slice(6, 40));
    }
    expect(await sql('SELECT secret_enc FROM webhook_endpoints')).toEqual(
      [1, 2, 3].map(() => ({ secret_enc: expect.stringMatching(/^pm1\.[0-9a-f]{16}\./) as string })),
    );
  });

  test.each<[object, ...string[]]>([
    [{}, 'url', 'events'],
    [{ url: URL }, 'events'],
    [{ url: URL, events: [] }, 'events'],
    [{ url: URL, events: 'message.sent' }, 'events'],
    [{ url: URL, events: ['message.read'] }, 'events[0]'],
    [{ url: URL, events: ['message.*'] }, 'events[0]'],
    [{ url: URL, events: Array.from({ length: 100 }, () => 'message.sent') }, 'events'],
    [{ url: 5, events: ['message.sent'] }, 'url'],
    [{ url: URL, events: ['*'], identity_ids: [] }, 'identity_ids'],
    [{ url: URL, events: ['*'], identity_ids: Array.from({ length: 101 }, () => 'x') }, 'identity_ids'],
    [{ url: URL, events: ['*'], description: 'a\nb' }, 'description'],
    [{ url: URL, events: ['*'], description: 'x'.repeat(201) }, 'description'],
    [{ url: URL, events: ['*'], secret: 'whsec_x' }, 'secret'],
    [{ url: URL, events: ['*'], enabled: false }, 'enabled'],
  ])('is not made of %j', async (body, ...expected) => {
    const answer = await refusal(lab.key, 'webhooks.createOfTenant', { params: params(), body });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', expected]);
    expect(await sql('SELECT 1 FROM webhook_endpoints')).toEqual([]);
  });

  test('is one of twenty of its owner, also when many are made at once', async () => {
    const body = { url: URL, events: ['message.sent'] };
    const ask = (key: string) => send(key, 'webhooks.createOfTenant', { params: params(), body });
    const answers = await Promise.all(Array.from({ length: 23 }, () => ask(lab.key)));
    expect(statuses(answers)).toEqual([...Array.from({ length: 20 }, () => 201), 422, 422, 422]);
    expect(await refusal(root, 'webhooks.createOfTenant', { params: params(), body })).toEqual({
      code: 'webhook_limit_reached',
      limit: 20,
    });
    for (let n = 0; n < 20; n++) await call(root, 'webhooks.create', { body, status: 201 });
    expect(await refusal(root, 'webhooks.create', { body })).toEqual({ code: 'webhook_limit_reached', limit: 20 });
    const other = await makeLab(root, 'other');
    await call(other.key, 'webhooks.createOfTenant', { params: { tenant_id: other.tenant }, body, status: 201 });
    const [gone] = (await call(lab.key, 'webhooks.list')).data;
    await call(lab.key, 'webhooks.delete', { params: { webhook_id: gone?.id ?? '' } });
    await make();
  });

  test('is deleted with what it was still to get, once', async () => {
    const { id } = await make();
    await sql(
      `INSERT INTO webhook_work (endpoint_id, event_id, event_type, attempt, step, due_at) VALUES (?, 'e', 't', 1, 1, ?)`,
      id,
      Date.now() + 60_000,
    );
    await call(lab.key, 'webhooks.delete', { params: { webhook_id: id } });
    for (const route of ['webhooks.get', 'webhooks.delete'] as const) {
      expect(await refusal(lab.key, route, { params: { webhook_id: id } })).toEqual({ code: 'webhook_not_found' });
    }
    expect(await sql('SELECT 1 FROM webhook_work')).toEqual([]);
    expect(await audited(id)).toEqual(['webhook.create', 'webhook.delete']);
  });
});

describe('the lists', () => {
  test('of a tenant and of all have pages, newest first', async () => {
    const { id: ofPlatform } = await call(root, 'webhooks.create', { body: { url: URL, events: ['*'] } });
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift((await make()).id);
    await sql('UPDATE webhook_endpoints SET created_at = 7');
    const found = async (key: string, route: 'webhooks.list' | 'webhooks.listOfTenant', query: object = {}) => {
      const all: string[] = [];
      let cursor: string | null = null;
      do {
        const page: { data: { id: string }[]; next_cursor: string | null } = await call(key, route, {
          params: route === 'webhooks.list' ? {} : params(),
          query: { limit: '2', ...query, ...(cursor === null ? {} : { cursor }) },
        });
        all.push(...page.data.map(({ id }) => id));
        cursor = page.next_cursor;
      } while (cursor !== null);
      return all;
    };
    expect(await found(lab.key, 'webhooks.listOfTenant')).toEqual(ids);
    expect(await found(lab.key, 'webhooks.list')).toEqual(ids);
    expect(await found(root, 'webhooks.list', { tenant_id: lab.tenant })).toEqual(ids);
    expect(await found(root, 'webhooks.list')).toEqual([...ids, ofPlatform]);
  });
});

describe('a change', () => {
  test('leaves what it does not name, and each is logged with its fields', async () => {
    const made = await make({ identity_ids: [lab.ann], description: 'x' });
    expect(await update(made.id, {})).toMatchObject({ url: URL, events: ['message.sent'], description: 'x' });
    const one = await update(made.id, { events: ['identity.paused', '*', '*'] });
    expect(one).toMatchObject({ events: ['identity.paused', '*'], identity_ids: [lab.ann], enabled: true });
    expect(Date.parse(one.updated_at)).toBeGreaterThan(Date.parse(made.updated_at));
    expect(await update(made.id, { identity_ids: null, description: null })).toMatchObject({
      identity_ids: null,
      description: null,
    });
    expect(await update(made.id, { identity_ids: [lab.bob] })).toMatchObject({ identity_ids: [lab.bob] });
    const rows = await sql(
      "SELECT details_json FROM audit_log WHERE action = 'webhook.update' ORDER BY created_at, id",
    );
    expect(rows.map(({ details_json: text }) => JSON.parse(String(text)) as unknown)).toEqual([
      { fields: [] },
      { fields: ['events'] },
      { fields: ['identity_ids', 'description'] },
      { fields: ['identity_ids'] },
    ]);
  });

  test('switches off and on by hand', async () => {
    const { id } = await make();
    expect(await update(id, { enabled: false })).toMatchObject({ enabled: false, disabled_reason: 'manual' });
    expect(await update(id, { description: 'off' })).toMatchObject({ enabled: false, disabled_reason: 'manual' });
    expect(await update(id, { enabled: true })).toMatchObject({ enabled: true, disabled_reason: null });
  });

  test('back on forgets the failures, also of one that was never off', async () => {
    const { id } = await make();
    const failing = async (enabled: number): Promise<void> => {
      await sql(
        `UPDATE webhook_endpoints SET enabled = ?, disabled_reason = ?, consecutive_failures = 150, first_failure_at = 1`,
        enabled,
        enabled === 1 ? null : 'failing',
      );
    };
    for (const enabled of [0, 1]) {
      await failing(enabled);
      await update(id, { description: 'x' });
      expect(await sql('SELECT consecutive_failures AS n FROM webhook_endpoints')).toEqual([{ n: 150 }]);
      expect(await update(id, { enabled: true })).toMatchObject({ enabled: true, disabled_reason: null });
      expect(await sql('SELECT consecutive_failures AS n, first_failure_at AS at FROM webhook_endpoints')).toEqual([
        { n: 0, at: null },
      ]);
    }
  });

  test('of the URL switches off until a test, and nothing else brings it back', async () => {
    const { id } = await make();
    expect(await update(id, { url: URL, enabled: true })).toMatchObject({ enabled: true });
    const off = { enabled: false, disabled_reason: 'url_changed' };
    expect(await update(id, { url: 'https://other.acme.com/' })).toMatchObject(off);
    expect(await update(id, { url: URL })).toMatchObject(off);
    for (const body of [{ enabled: true }, { url: 'https://third.acme.com/', enabled: true }]) {
      const answer = await refusal(lab.key, 'webhooks.update', { params: { webhook_id: id }, body });
      expect([answer.code, paths(answer)]).toEqual(['invalid_request', ['enabled']]);
    }
    expect(await get(id)).toMatchObject({ ...off, url: URL });
    const tested = await call(lab.key, 'webhooks.test', { params: { webhook_id: id } });
    expect(tested).toMatchObject({ status: 'succeeded', event_type: 'webhook.test', attempt: 1, http_status: 200 });
    expect(await get(id)).toMatchObject({ enabled: true, disabled_reason: null });
  });

  test.each<[string, object[]]>([
    ['alone', [{ enabled: false }]],
    ['before another URL', [{ enabled: false }, { url: OTHER }]],
    ['with another URL', [{ url: OTHER, enabled: false }]],
    ['after another URL', [{ url: OTHER }, { enabled: false }, { description: 'x' }]],
  ])('that switches off %s is not undone by a test', async (_when, changes) => {
    const { id } = await make();
    for (const change of changes) await update(id, change);
    const off = { enabled: false, disabled_reason: 'manual' };
    expect(await get(id)).toMatchObject(off);
    expect(await call(lab.key, 'webhooks.test', { params: { webhook_id: id } })).toMatchObject({ status: 'succeeded' });
    expect(await get(id)).toMatchObject(off);
    expect(await update(id, { enabled: true })).toMatchObject({ enabled: true, disabled_reason: null });
  });

  test('that switches on again leaves a URL that nobody has answered at to its test', async () => {
    const { id } = await make();
    await update(id, { url: OTHER, enabled: false });
    expect(await update(id, { enabled: true })).toMatchObject({ enabled: false, disabled_reason: 'url_changed' });
    await call(lab.key, 'webhooks.test', { params: { webhook_id: id } });
    expect(await get(id)).toMatchObject({ enabled: true, disabled_reason: null });
  });

  test('that meets another is worked out again, so that none is lost', async () => {
    const { id } = await make();
    const bodies = [{ description: 'one' }, { events: ['message.bounced'] }, { enabled: false }];
    const answers = await Promise.all(
      bodies.map((body) => send(lab.key, 'webhooks.update', { params: { webhook_id: id }, body })),
    );
    expect(statuses(answers)).toEqual([200, 200, 200]);
    expect(await get(id)).toMatchObject({ description: 'one', events: ['message.bounced'], enabled: false });
  });

  test('that others overtake each time is given up', async () => {
    const { id } = await make();
    const batch = env.DB.batch.bind(env.DB);
    vi.spyOn(env.DB, 'batch').mockImplementation(async (statements) => {
      await batch([env.DB.prepare('UPDATE webhook_endpoints SET updated_at = updated_at + 1')]);
      return batch(statements);
    });
    expect(await refusal(lab.key, 'webhooks.update', { params: { webhook_id: id }, body: { enabled: false } })).toEqual(
      {
        code: 'unavailable',
        step: 'directory',
      },
    );
  });

  test.each<[object, string]>([
    [{ url: 'http://hooks.acme.com/' }, 'url'],
    [{ url: 'https://127.0.0.1/' }, 'url'],
    [{ events: [] }, 'events'],
    [{ events: ['nonsense'] }, 'events[0]'],
    [{ identity_ids: [] }, 'identity_ids'],
    [{ enabled: 'no' }, 'enabled'],
    [{ disabled_reason: null }, 'disabled_reason'],
    [{ secret: 'whsec_x' }, 'secret'],
  ])('to %j is refused and changes nothing', async (body, path) => {
    const made = await make();
    const answer = await refusal(lab.key, 'webhooks.update', { params: { webhook_id: made.id }, body });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', [path]]);
    expect(await get(made.id)).toEqual(withoutSecret(made));
  });
});

describe('another secret', () => {
  const rotate = (id: string, body: object = {}) =>
    call(lab.key, 'webhooks.rotateSecret', { params: { webhook_id: id }, body });
  const row = async () => (await sql('SELECT prev_secret_enc, prev_secret_expires_at FROM webhook_endpoints'))[0];

  test('takes the place of the one before, which goes on for a day unless said otherwise', async () => {
    const made = await make();
    const turned = await rotate(made.id);
    expect(turned).toEqual({
      ...withoutSecret(made),
      updated_at: turned.updated_at,
      secret: expect.stringMatching(/^whsec_/) as string,
    });
    expect(turned.secret).not.toBe(made.secret);
    const until = Number((await row())?.['prev_secret_expires_at']) - Date.now();
    expect(Math.abs(until - 86_400_000)).toBeLessThan(60_000);
    await rotate(made.id, { overlap_hours: 0 });
    expect(await row()).toEqual({ prev_secret_enc: null, prev_secret_expires_at: null });
    expect(await audited(made.id)).toEqual(['webhook.create', 'webhook.rotate_secret', 'webhook.rotate_secret']);
  });

  test('needs no body, and no more than a week of overlap', async () => {
    const { id } = await make();
    expect((await send(lab.key, 'webhooks.rotateSecret', { params: { webhook_id: id } })).status).toBe(200);
    for (const hours of [-1, 169, 1.5, '1', null]) {
      const body = { overlap_hours: hours };
      const answer = await refusal(lab.key, 'webhooks.rotateSecret', { params: { webhook_id: id }, body });
      expect(paths(answer)).toEqual(['overlap_hours']);
    }
  });
});
