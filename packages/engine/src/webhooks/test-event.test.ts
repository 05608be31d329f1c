import { EVENT_API_VERSION, type EventEnvelope } from '@pmail/core/events/types.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import type { WebhookError } from '@pmail/core/webhooks/outcome.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { auditEntry, newId, rows } from '../directory/directory.fixture.ts';
import { deleteEndpoint, type EndpointId } from './endpoints.ts';
import { sweepWebhooks } from './fan-out.ts';
import { recordTest } from './test-event.ts';
import { Hooks } from './webhooks.fixture.ts';

/** Tests on request: one attempt, told to nobody else, by which an endpoint at another URL comes on again. */

let hooks: Hooks;
let endpoint: EndpointId;

beforeEach(async () => {
  hooks = await Hooks.create();
  endpoint = await hooks.endpoint();
});

async function tested(error: WebhookError | null, seen?: Awaited<ReturnType<Hooks['row']>>) {
  const row = seen ?? (await hooks.row(endpoint));
  const event: EventEnvelope = {
    id: newId('evt', hooks.now),
    type: 'webhook.test',
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(hooks.now),
    tenant_id: row.tenant_id,
    identity_id: null,
    sequence: null,
    data: { webhook_id: endpoint, message: 'hello' },
  };
  const result = { error, http_status: error === null ? 200 : null, started: hooks.now, duration_ms: 3 };
  return { event, attempt: await recordTest(hooks.world, row, event, result) };
}

describe('a test', () => {
  test('is kept as an event and its one attempt, and nobody else is told', async () => {
    await hooks.endpoint();
    await hooks.endpoint({ tenant_id: null });
    const { event, attempt } = await tested(null);
    expect(attempt).toMatchObject({
      endpoint_id: endpoint,
      event_id: event.id,
      event_type: 'webhook.test',
      attempt: 1,
      status: 'succeeded',
      next_attempt_at: null,
    });
    expect(await hooks.attempts(endpoint)).toEqual([attempt]);
    const [row] = await rows(hooks.db, 'SELECT * FROM event_index WHERE id = ?', event.id);
    expect(row).toMatchObject({ type: 'webhook.test', payload_json: JSON.stringify(event), fanned_out_at: hooks.now });
    hooks.now += 120_000;
    expect(await sweepWebhooks(hooks.world)).toBe(0);
    expect(await rows(hooks.db, 'SELECT 1 FROM webhook_work')).toEqual([]);
  });

  test('that fails is not tried again and does not count against the endpoint', async () => {
    await hooks.set(endpoint, { consecutive_failures: 99, first_failure_at: 0 });
    expect((await tested('timeout')).attempt).toMatchObject({
      status: 'failed',
      error: 'timeout',
      next_attempt_at: null,
    });
    expect((await tested('status_410')).attempt).toMatchObject({ status: 'failed', error: 'status_410' });
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 1, consecutive_failures: 99 });
    expect(await rows(hooks.db, 'SELECT 1 FROM webhook_work')).toEqual([]);
  });
});

describe('an endpoint at another URL', () => {
  beforeEach(async () => {
    await hooks.set(endpoint, {
      enabled: 0,
      disabled_reason: 'url_changed',
      consecutive_failures: 40,
      first_failure_at: 1,
    });
  });

  test('is on again after a test that was answered well, its failures forgotten', async () => {
    const { updated_at: before } = await hooks.row(endpoint);
    await tested(null);
    const after = await hooks.row(endpoint);
    expect(after).toMatchObject({ enabled: 1, disabled_reason: null, consecutive_failures: 0, first_failure_at: null });
    expect(after.updated_at).toBeGreaterThan(before);
  });

  test.each<WebhookError>(['timeout', 'status_4xx', 'redirect', 'ssrf_blocked'])(
    'stays off after %s',
    async (error) => {
      await tested(error);
      expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, disabled_reason: 'url_changed' });
    },
  );

  test('stays off when its owner switches it off while the test runs', async () => {
    const seen = await hooks.row(endpoint);
    await hooks.set(endpoint, { disabled_reason: 'manual' });
    await tested(null, seen);
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, disabled_reason: 'manual' });
  });

  test('stays off when the URL changed while the test ran', async () => {
    const seen = await hooks.row(endpoint);
    await hooks.set(endpoint, { url: 'https://other.acme.com/' });
    await tested(null, seen);
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, disabled_reason: 'url_changed' });
  });
});

test.each(['manual', 'failing'] as const)('an endpoint that is off because of %s stays off', async (reason) => {
  await hooks.set(endpoint, { enabled: 0, disabled_reason: reason });
  await tested(null);
  expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, disabled_reason: reason });
});

test('an endpoint that goes while its test runs leaves nothing of it', async () => {
  const seen = await hooks.row(endpoint);
  await deleteEndpoint(hooks.db, endpoint, auditEntry('webhook.delete', hooks.tenant.id));
  await tested(null, seen);
  expect(await hooks.attempts(endpoint)).toEqual([]);
});
