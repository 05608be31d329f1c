import type { EventId } from '@pmail/core/ids.ts';
import type { WebhookError } from '@pmail/core/webhooks/outcome.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { rows } from '../directory/directory.fixture.ts';
import type { EndpointId } from './endpoints.ts';
import { recordAttempt } from './record.ts';
import { Hooks } from './webhooks.fixture.ts';

/** What follows from an attempt: the next, the end, and what is thought of the endpoint. */

const S = 1_000;
const M = 60 * S;
const H = 60 * M;

let hooks: Hooks;
let endpoint: EndpointId;

beforeEach(async () => {
  hooks = await Hooks.create();
  endpoint = await hooks.endpoint();
});

/** One attempt that ends so. */
async function attempt(event: EventId, error: WebhookError | null) {
  return hooks.record(endpoint, await hooks.take(endpoint, event), error);
}

describe('a delivery', () => {
  test('that fails again and again is tried thirteen times over three days, and is dead then (V10)', async () => {
    const [event = 'evt_'] = await hooks.told(1);
    const waits = [30 * S, 2 * M, 10 * M, 30 * M, H, 2 * H, 4 * H, 8 * H, 12 * H, 12 * H, 12 * H, 19 * H];
    for (const [n, wait] of waits.entries()) {
      hooks.jobs.length = 0;
      expect(await attempt(event, 'status_5xx')).toMatchObject({
        attempt: n + 1,
        status: 'failed',
        error: 'status_5xx',
        next_attempt_at: hooks.now + wait,
      });
      expect(await hooks.work(endpoint)).toMatchObject([
        { attempt: n + 2, step: n + 2, due_at: hooks.now + wait, taken_until: null },
      ]);
      // Longer than twelve hours no queue can wait; the sweep brings those.
      expect(hooks.jobs.map(({ at }) => at)).toEqual(wait <= 12 * H ? [hooks.now + wait] : []);
      hooks.now += wait;
    }
    hooks.jobs.length = 0;
    expect(await attempt(event, 'timeout')).toMatchObject({ attempt: 13, status: 'dead', next_attempt_at: null });
    expect([await hooks.work(endpoint), hooks.queued()]).toEqual([[], []]);
    expect((await hooks.attempts(endpoint)).map(({ attempt: n }) => n)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
    ]);
  });

  test.each([
    [0, 27 * S],
    [0.5, 30 * S],
    [0.999_999, 33 * S],
  ])('waits a tenth more or less (%f)', async (random, wait) => {
    hooks.random = random;
    const [event = 'evt_'] = await hooks.told(1);
    const { next_attempt_at: next } = await attempt(event, 'connect');
    expect(Math.abs((next ?? 0) - hooks.now - wait)).toBeLessThanOrEqual(1);
  });

  test('that succeeds has ended', async () => {
    const [event = 'evt_'] = await hooks.told(1);
    hooks.jobs.length = 0;
    expect(await attempt(event, null)).toMatchObject({ status: 'succeeded', error: null, next_attempt_at: null });
    expect([await hooks.work(endpoint), hooks.queued()]).toEqual([[], []]);
  });

  test.each<WebhookError>(['event_unavailable', 'endpoint_disabled', 'status_410'])(
    'is dead at once by %s',
    async (error) => {
      const [event = 'evt_'] = await hooks.told(1);
      expect(await attempt(event, error)).toMatchObject({ attempt: 1, status: 'dead', next_attempt_at: null });
      expect(await hooks.work(endpoint)).toEqual([]);
    },
  );

  test.each<WebhookError>([
    'timeout',
    'dns',
    'tls',
    'connect',
    'redirect',
    'status_4xx',
    'status_5xx',
    'ssrf_blocked',
    'invalid_url',
    'secret_unavailable',
  ])('is tried again after %s', async (error) => {
    const [event = 'evt_'] = await hooks.told(1);
    expect(await attempt(event, error)).toMatchObject({ status: 'failed' });
    expect(await hooks.work(endpoint)).toHaveLength(1);
  });

  test('of which two records are made goes by the first', async () => {
    const [event = 'evt_'] = await hooks.told(1);
    const work = await hooks.take(endpoint, event);
    await hooks.record(endpoint, work, 'status_5xx');
    const after = await hooks.work(endpoint);
    await hooks.record(endpoint, work, 'timeout');
    // The second failure is the same attempt, told twice.
    expect((await hooks.row(endpoint)).consecutive_failures).toBe(1);
    await hooks.record(endpoint, work, null);
    expect(await hooks.work(endpoint)).toEqual(after);
    expect(await hooks.attempts(endpoint)).toMatchObject([{ attempt: 1, error: 'status_5xx' }]);
  });
});

const disabled = () => rows(hooks.db, "SELECT * FROM event_index WHERE type = 'webhook.disabled'");

/** Failures so far, the first of them so long ago. */
async function failedSoFar(count: number, age: number): Promise<void> {
  await hooks.set(endpoint, { consecutive_failures: count, first_failure_at: hooks.now - age });
}

describe('an endpoint', () => {
  test('is remembered its failures in a row, until one attempt succeeds', async () => {
    const [a = 'evt_', b = a, c = a] = await hooks.told(3);
    const first = hooks.now;
    await attempt(a, 'timeout');
    hooks.now += S;
    await attempt(b, 'dns');
    expect(await hooks.row(endpoint)).toMatchObject({ consecutive_failures: 2, first_failure_at: first, enabled: 1 });
    await attempt(c, null);
    expect(await hooks.row(endpoint)).toMatchObject({ consecutive_failures: 0, first_failure_at: null });
  });

  test.each<WebhookError>(['event_unavailable', 'secret_unavailable', 'endpoint_disabled'])(
    'is not held to account for %s',
    async (error) => {
      await failedSoFar(99, 30 * H);
      const [event = 'evt_'] = await hooks.told(1);
      await attempt(event, error);
      expect(await hooks.row(endpoint)).toMatchObject({ consecutive_failures: 99, enabled: 1 });
    },
  );

  test.each([
    [99, 24 * H, 1],
    [99, 24 * H - 1, 0],
    [98, 300 * H, 0],
    [5_000, 23 * H, 0],
    [5_000, 72 * H, 1],
  ])('with %i failures over %i ms before this one: switched off %i times', async (count, age, times) => {
    await failedSoFar(count, age);
    const [event = 'evt_'] = await hooks.told(1);
    hooks.jobs.length = 0;
    await attempt(event, 'status_5xx');
    expect(await hooks.row(endpoint)).toMatchObject(
      times === 1 ? { enabled: 0, disabled_reason: 'failing', consecutive_failures: count + 1 } : { enabled: 1 },
    );
    const told = await disabled();
    expect(told).toHaveLength(times);
    expect(hooks.queued().filter((id) => id.startsWith('fanout'))).toEqual(
      told.map(({ id }) => `fanout ${String(id)}`),
    );
    for (const { payload_json: text, tenant_id: tenant } of told) {
      expect(tenant).toBe(hooks.tenant.id);
      expect(JSON.parse(String(text))).toMatchObject({
        type: 'webhook.disabled',
        tenant_id: hooks.tenant.id,
        identity_id: null,
        sequence: null,
        data: { webhook_id: endpoint, reason: 'failing' },
      });
    }
  });

  test('that says it is gone is switched off at once', async () => {
    const [event = 'evt_'] = await hooks.told(1);
    await attempt(event, 'status_410');
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, disabled_reason: 'failing' });
    expect(JSON.parse(String((await disabled())[0]?.['payload_json']))).toMatchObject({ data: { reason: 'gone' } });
  });

  test('is switched off once by many that fail at the same time', async () => {
    await failedSoFar(99, 30 * H);
    const events = await hooks.told(8);
    const works = await Promise.all(events.map((event) => hooks.take(endpoint, event)));
    const before = await hooks.row(endpoint);
    const result = { error: 'timeout', http_status: null, started: hooks.now, duration_ms: 1 } as const;
    await Promise.all(
      works.map(async (work) => (work === undefined ? undefined : recordAttempt(hooks.world, before, work, result))),
    );
    expect(await disabled()).toHaveLength(1);
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, consecutive_failures: 107 });
  });

  test('is judged as it is, not as it was when the attempt began', async () => {
    await failedSoFar(99, 30 * H);
    const [slow = 'evt_', quick = slow] = await hooks.told(2);
    const work = await hooks.take(endpoint, slow);
    const before = await hooks.row(endpoint);
    await attempt(quick, null);
    if (work === undefined) throw new Error('not taken up');
    const result = { error: 'timeout', http_status: null, started: hooks.now, duration_ms: 1 } as const;
    await recordAttempt(hooks.world, before, work, result);
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 1, consecutive_failures: 1 });
    // And the other way round: what failed meanwhile is forgotten by a success that began before it.
    const [late = slow, failing = slow] = await hooks.told(2);
    const began = await hooks.take(endpoint, late);
    await hooks.set(endpoint, { consecutive_failures: 0, first_failure_at: null });
    const seen = await hooks.row(endpoint);
    await attempt(failing, 'timeout');
    if (began === undefined) throw new Error('not taken up');
    await recordAttempt(hooks.world, seen, began, { ...result, error: null });
    expect(await hooks.row(endpoint)).toMatchObject({ consecutive_failures: 0, first_failure_at: null });
  });

  test('of the platform tells the platform of itself, where others listen', async () => {
    const own = await hooks.endpoint({ tenant_id: null, event_types_json: '["message.sent"]' });
    const others = await hooks.endpoint({ tenant_id: null, event_types_json: '["webhook.disabled"]' });
    const tenants = await hooks.endpoint({ event_types_json: '["webhook.disabled","*"]' });
    const [event = 'evt_'] = await hooks.told(1);
    await hooks.run();
    hooks.posts.length = 0;
    const [next = event] = await hooks.told(1);
    await hooks.record(own, await hooks.take(own, next), 'status_410');
    await hooks.run();
    const told = hooks.posts.filter(({ body }) => body.includes('webhook.disabled'));
    expect(told.map(({ url }) => url)).toEqual([(await hooks.row(others)).url]);
    expect(JSON.parse(told[0]?.body ?? '')).toMatchObject({
      tenant_id: null,
      data: { webhook_id: own, reason: 'gone' },
    });
    expect((await hooks.attempts(tenants)).filter(({ event_type: type }) => type === 'webhook.disabled')).toEqual([]);
  });

  test('that is off gets nothing: what was still due ends as dead', async () => {
    await hooks.told(3);
    await hooks.set(endpoint, { enabled: 0, disabled_reason: 'manual' });
    await hooks.run();
    expect(hooks.posts).toEqual([]);
    expect(await hooks.attempts(endpoint)).toMatchObject(
      Array.from({ length: 3 }, () => ({ status: 'dead', error: 'endpoint_disabled', http_status: null })),
    );
    expect(await hooks.work(endpoint)).toEqual([]);
  });
});
