import { env } from 'cloudflare:workers';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { type Hook, HookLab, signatureOf } from './hooks.ts';
import { keyed, makeLab } from './mail.ts';
import { keepStorage } from './storage.ts';
import { audited, call, paths, refusal, send, sql } from './support.ts';

/** Tests of endpoints on request, the list of attempts, and deliveries once more. */

keepStorage();

let hooks: HookLab;

beforeAll(async () => {
  vi.restoreAllMocks();
  hooks = await HookLab.make();
});
beforeEach(() => {
  hooks.begin();
});
afterEach(() => hooks.end());

describe('a test', () => {
  const testing = ({ id }: Hook, headers: Record<string, string> = {}) =>
    call(hooks.root, 'webhooks.test', { params: { webhook_id: id }, headers });

  test('is one delivery while the caller waits, also to an endpoint that is off', async () => {
    const hooked = await hooks.hook(['message.sent']);
    await call(hooks.root, 'webhooks.update', { params: { webhook_id: hooked.id }, body: { enabled: false } });
    hooks.net.endpoints.set(hooked.url, () => new Response(null, { status: 204 }));
    const tested = await testing(hooked);
    expect(tested).toMatchObject({
      webhook_id: hooked.id,
      event_type: 'webhook.test',
      attempt: 1,
      status: 'succeeded',
      http_status: 204,
      error: null,
      next_attempt_at: null,
    });
    expect(tested.duration_ms).toBeGreaterThanOrEqual(0);
    expect(hooks.events(hooked)).toMatchObject([
      { id: tested.event_id, type: 'webhook.test', tenant_id: hooks.lab.tenant, data: { message: 'hello' } },
    ]);
    expect(hooks.at(hooked)[0]?.headers.get('webhook-signature')).toBe(
      await signatureOf(hooks.at(hooked)[0], [hooked.secret ?? '']),
    );
    expect(await hooks.attempts(hooked)).toEqual([tested]);
    expect(await call(hooks.root, 'webhooks.get', { params: { webhook_id: hooked.id } })).toMatchObject({
      enabled: false,
    });
  });

  test.each([
    [302, 'redirect'],
    [404, 'status_4xx'],
    [410, 'status_410'],
    [500, 'status_5xx'],
  ])('that is answered with %i has failed and is not tried again', async (status, error) => {
    const hooked = await hooks.hook(['message.sent']);
    hooks.net.endpoints.set(
      hooked.url,
      () => new Response(null, { status, headers: { location: 'http://169.254.169.254/' } }),
    );
    expect(await testing(hooked)).toMatchObject({
      status: 'failed',
      http_status: status,
      error,
      next_attempt_at: null,
    });
    expect(hooks.net.posted).toHaveLength(1);
    expect(await call(hooks.root, 'webhooks.get', { params: { webhook_id: hooked.id } })).toMatchObject({
      enabled: true,
    });
  });

  test('is told to nobody else and cannot be replayed', async () => {
    const all = await hooks.hook(['*']);
    const hooked = await hooks.hook(['*']);
    const { event_id } = await testing(hooked);
    await sql('UPDATE event_index SET occurred_at = occurred_at - 120000 WHERE id = ?', event_id);
    await runCron('* * * * *', env);
    await hooks.something();
    await hooks.comes(all, 1);
    expect(hooks.events(all).map(({ type }) => type)).toEqual(['suppression.created']);
    const body = { event_ids: [event_id] };
    expect(await refusal(hooks.root, 'webhooks.replay', { params: { webhook_id: hooked.id }, body })).toEqual({
      code: 'event_not_found',
    });
  });

  test('under an Idempotency-Key is made once', async () => {
    const hooked = await hooks.hook(['message.sent']);
    const headers = keyed();
    const first = await testing(hooked, headers);
    expect(await testing(hooked, headers)).toEqual(first);
    expect(hooks.at(hooked)).toHaveLength(1);
  });
});

describe('attempts', () => {
  test('are listed newest first, with their filters and pages', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    hooks.net.endpoints.set(hooked.url, () => new Response(null, { status: 500 }));
    await hooks.something();
    await hooks.comes(hooked, 1);
    hooks.net.endpoints.delete(hooked.url);
    await call(hooks.root, 'webhooks.test', { params: { webhook_id: hooked.id } });
    await hooks.something();
    const all = await hooks.comes(hooked, 3);
    expect(all.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'failed']);
    expect(await hooks.attempts(hooked, { status: 'failed' })).toEqual([all[2]]);
    expect(await hooks.attempts(hooked, { event_type: 'webhook.test' })).toEqual([all[1]]);
    expect(await hooks.attempts(hooked, { status: 'dead' })).toEqual([]);
    expect(await hooks.attempts(hooked, { after: all[2]?.created_at ?? '' })).toEqual(all.slice(0, 2));
    const page = await call(hooks.root, 'webhooks.deliveries.list', {
      params: { webhook_id: hooked.id },
      query: { limit: '2' },
    });
    expect(page.data).toEqual(all.slice(0, 2));
    expect(await hooks.attempts(hooked, { limit: '2', cursor: page.next_cursor ?? '' })).toEqual(all.slice(2));
    for (const [name, value] of Object.entries({ status: 'lost', event_type: 'x', after: 'yesterday', before: 'x' })) {
      const query = { [name]: value };
      const answer = await refusal(hooks.root, 'webhooks.deliveries.list', {
        params: { webhook_id: hooked.id },
        query,
      });
      expect(paths(answer)).toEqual([name]);
    }
  });
});

describe('a replay', () => {
  const replay = ({ id }: Hook, body: object) =>
    call(hooks.root, 'webhooks.replay', { params: { webhook_id: id }, body, status: 202 });

  test('brings events again with the same id and bytes, attempts counted on', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    await hooks.something();
    const [first] = await hooks.comes(hooked, 1);
    expect(await replay(hooked, { event_ids: [first?.event_id ?? '', first?.event_id ?? ''] })).toEqual({ queued: 1 });
    expect(await hooks.comes(hooked, 2)).toMatchObject([
      { event_id: first?.event_id, attempt: 2, status: 'succeeded' },
      { attempt: 1 },
    ]);
    const [one, two] = hooks.at(hooked);
    expect(two?.body).toBe(one?.body);
    expect(two?.headers.get('webhook-id')).toBe(one?.headers.get('webhook-id'));
    expect(await audited(hooked.id)).toEqual(['webhook.create', 'webhook.replay']);
  });

  test('by time and outcome brings those of before the endpoint, and of its own only', async () => {
    const since = new Date().toISOString();
    await hooks.something();
    await hooks.something();
    const other = await makeLab(hooks.root, 'another');
    await call(other.key, 'suppressions.create', {
      params: { tenant_id: other.tenant },
      body: { address: 'x@example.net', reason: 'manual' },
    });
    const hooked = await hooks.hook(['suppression.created']);
    expect(await replay(hooked, { since, status: 'dead' })).toEqual({ queued: 0 });
    expect(await replay(hooked, { since: new Date(Date.now() + 60_000).toISOString() })).toEqual({ queued: 0 });
    expect(await replay(hooked, { since })).toEqual({ queued: 2 });
    const list = await hooks.comes(hooked, 2);
    expect(list.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 'succeeded'],
      [1, 'succeeded'],
    ]);
    expect(hooks.events(hooked).every(({ tenant_id: tenant }) => tenant === hooks.lab.tenant)).toBe(true);
    expect(await replay(hooked, { since, until: new Date().toISOString(), status: 'succeeded' })).toEqual({
      queued: 2,
    });
    await hooks.comes(hooked, 4);
  });

  test('of what the endpoint does not get is refused as if there were no such event', async () => {
    const typed = await hooks.hook(['message.sent']);
    await hooks.something();
    const [event] = await sql("SELECT id FROM event_index WHERE type = 'suppression.created' LIMIT 1");
    const [others] = await sql('SELECT id FROM event_index WHERE tenant_id <> ? LIMIT 1', hooks.lab.tenant);
    for (const id of [event?.['id'], others?.['id'], 'evt_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense']) {
      const body = { event_ids: [String(id)] };
      expect(await refusal(hooks.root, 'webhooks.replay', { params: { webhook_id: typed.id }, body })).toEqual({
        code: 'event_not_found',
      });
    }
    expect(await sql('SELECT 1 FROM webhook_work WHERE endpoint_id = ?', typed.id)).toEqual([]);
  });

  test.each<[object, ...string[]]>([
    [{}, 'event_ids'],
    [{ until: '2026-01-01T00:00:00Z' }, 'event_ids'],
    [{ event_ids: [] }, 'event_ids'],
    [{ event_ids: Array.from({ length: 101 }, () => 'x') }, 'event_ids'],
    [{ event_ids: ['x'], since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' }, 'since', 'until'],
    [{ event_ids: ['x'], status: 'dead' }, 'status'],
    [{ since: 'yesterday' }, 'since'],
    [{ since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }, 'until'],
    [{ since: '2026-01-02T00:00:00Z', until: '2026-01-02T00:00:00Z' }, 'until'],
    [{ since: '2026-01-02T00:00:00Z', status: 'lost' }, 'status'],
    [{ since: '2026-01-02T00:00:00Z', limit: 5 }, 'limit'],
  ])('of %j is refused', async (body, ...expected) => {
    const hooked = await hooks.hook(['suppression.created']);
    const answer = await refusal(hooks.root, 'webhooks.replay', { params: { webhook_id: hooked.id }, body });
    expect([answer.code, paths(answer)]).toEqual(['invalid_request', expected]);
  });

  test('needs a body', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    expect((await send(hooks.root, 'webhooks.replay', { params: { webhook_id: hooked.id } })).status).toBe(400);
  });
});
