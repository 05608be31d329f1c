import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError, PmailClient } from '@pmail/client/client.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { answers, type Behaviour, verifies, WebhookReceiver } from '../webhook-receiver.ts';
import { Runtime } from './runtime.ts';

/** Webhooks from the real runtime to a real receiver, which verifies them with the public library. */

const WAITS = {
  claim_ttl_ms: 4_000,
  dispatch_after_ms: 2_000,
  outbox_backoff_ms_min: 100,
  followup_retry_ms: 1_000,
  webhook_wait_ms_max: 300,
  // Longer than an attempt takes.
  webhook_lease_ms: 16_000,
  webhook_sweep_after_ms: 1_000,
};

let state: string;
let runtime: Runtime;
let receiver: WebhookReceiver;
let platform: PmailClient;
let tenant: string;
let writer: string;
let client: PmailClient;

beforeAll(async () => {
  state = await mkdtemp(join(tmpdir(), 'pmail-webhooks-'));
  receiver = await WebhookReceiver.start();
  runtime = await Runtime.start({
    state,
    cron_ms: 1_000,
    vars: {
      PM_WEBHOOK_LOOPBACK: 'on',
      PM_WAITS: JSON.stringify(WAITS),
    },
  });
  platform = new PmailClient({ url: runtime.url, key: runtime.secrets.platform_key, retries: 5 });
  const made = await platform.call('tenants.create', { body: { slug: 'hooks', name: 'Hooks', mode: 'test' } });
  tenant = made.body.id;
  const identity = await platform.call('identities.create', {
    params: { tenant_id: tenant },
    body: { username: 'writer', display_name: 'Writer', owner: { name: 'O', email: 'o@example.com' } },
  });
  writer = (identity.body as { id: string }).id;
  const key = await platform.call('keys.create', {
    body: {
      name: 'hooks',
      level: 'tenant',
      tenant_id: tenant,
      permissions: ['messages:send', 'messages:read', 'quarantine:review', 'webhooks:manage'],
    },
  });
  client = new PmailClient({ url: runtime.url, key: (key.body as { secret: string }).secret, retries: 5 });
});

afterAll(async () => {
  await runtime?.stop();
  await receiver?.stop();
  await rm(state, { recursive: true, force: true });
});

let paths = 0;

async function endpoint(
  events: string[] = ['message.sent'],
  changes: object = {},
): Promise<{ id: string; path: string; secret: string }> {
  const path = `/hook-${++paths}`;
  const { body } = await client.call('webhooks.createOfTenant', {
    params: { tenant_id: tenant },
    body: { url: `${receiver.origin}${path}`, events, ...changes } as never,
  });
  const secret = body.secret ?? '';
  receiver.secrets.set(path, [secret]);
  return { id: body.id, path, secret };
}

async function send(subject = 'Hello'): Promise<string> {
  const { body } = await client.call('messages.send', {
    params: { identity_id: writer },
    body: { to: ['delivered@simulator.invalid'], subject, text: 'Grüße </script>' },
    idempotencyKey: randomBytes(8).toString('hex'),
  });
  return (body as { id: string }).id;
}

async function deliveries(webhook: string) {
  const { body } = await client.call('webhooks.deliveries.list', {
    params: { webhook_id: webhook },
    query: { limit: 100 },
  });
  return body.data;
}

/** Waits until the attempts at an endpoint satisfy a condition. */
async function settled(webhook: string, done: (list: Awaited<ReturnType<typeof deliveries>>) => boolean) {
  const ends = Date.now() + 30_000;
  for (;;) {
    const list = await deliveries(webhook);
    if (done(list)) return list;
    if (Date.now() > ends) throw new Error(`not settled: ${JSON.stringify(list)}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
  }
}

async function drop(webhook: string): Promise<void> {
  await client.call('webhooks.delete', { params: { webhook_id: webhook } });
}

test('every delivery verifies, carries the event as it was serialised, and a changed byte does not verify', async () => {
  const hook = await endpoint(['message.sent', 'message.delivered']);
  const id = await send('Größe 😀');
  const [sent, delivered] = await receiver.until(hook.path, 2);
  if (sent === undefined || delivered === undefined) throw new Error('nothing came');
  for (const { verified_by: by, headers, event, body } of [sent, delivered]) {
    expect(by).toEqual([hook.secret]);
    expect(headers['webhook-id']).toBe(event.id);
    expect(headers['content-type']).toBe('application/json');
    expect(event).toMatchObject({ tenant_id: tenant, identity_id: writer, api_version: '2026-10-01' });
    expect(verifies(hook.secret, body.replace('"tenant_id"', '"tenant_iD"'), headers)).toBe(false);
    expect(
      verifies(hook.secret, body, {
        ...headers,
        'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 400),
      }),
    ).toBe(false);
    const stored = await client.call('events.get', { params: { event_id: event.id } });
    expect(stored.body).toEqual(event);
  }
  expect([sent, delivered].map(({ event }) => event.type).sort()).toEqual(['message.delivered', 'message.sent']);
  expect(JSON.stringify(sent.event.data)).toContain(id);
  expect(await settled(hook.id, (list) => list.length === 2)).toMatchObject([
    { status: 'succeeded', http_status: 200, attempt: 1, error: null, next_attempt_at: null },
    { status: 'succeeded' },
  ]);
  await drop(hook.id);
});

/** Answers when the second in which a delivery came is over, so that whatever follows has another timestamp. */
function inAnotherSecond(...statuses: number[]): Behaviour {
  return (response, nth) => {
    setTimeout(() => answers(...statuses)(response, nth), 1_010 - (Date.now() % 1_000));
  };
}

test('a failing endpoint is tried again with a fresh timestamp and the same bytes, and a replay brings it once more', async () => {
  const hook = await endpoint();
  receiver.behave(hook.path, inAnotherSecond(500, 500, 200, 200));
  await send();
  const got = await receiver.until(hook.path, 3);
  await settled(hook.id, (list) => list[0]?.status === 'succeeded');
  const { body } = await client.call('webhooks.replay', {
    params: { webhook_id: hook.id },
    body: { event_ids: [got[0]?.event.id ?? ''] },
  });
  expect(body).toEqual({ queued: 1 });
  const all = await receiver.until(hook.path, 4);
  expect(new Set(all.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(new Set(all.map((entry) => entry.body)).size).toBe(1);
  for (const { at, headers, verified_by: by } of all) {
    expect(by).toEqual([hook.secret]);
    expect(Math.abs(at / 1_000 - Number(headers['webhook-timestamp']))).toBeLessThan(5);
  }
  expect(new Set(all.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(4);
  const [first] = all;
  if (first === undefined) throw new Error('nothing came');
  vi.useFakeTimers({ toFake: ['Date'], now: first.at + 6 * 60_000 });
  expect(verifies(hook.secret, first.body, first.headers)).toBe(false);
  vi.useRealTimers();
  expect(verifies(hook.secret, first.body, first.headers)).toBe(true);
  const list = await settled(hook.id, (rows) => rows.length === 4 && rows[0]?.status === 'succeeded');
  expect(list.map(({ attempt, status, error }) => [attempt, status, error])).toEqual([
    [4, 'succeeded', null],
    [3, 'succeeded', null],
    [2, 'failed', 'status_5xx'],
    [1, 'failed', 'status_5xx'],
  ]);
  await drop(hook.id);
});

test('while one endpoint hangs no other waits (V10)', async () => {
  const slow = await endpoint();
  const quick = await endpoint();
  receiver.behave(slow.path, () => {});
  for (let n = 0; n < 12; n++) await send(`Number ${n}`);
  const started = Date.now();
  await receiver.until(quick.path, 12, 14_000);
  expect(Date.now() - started).toBeLessThan(14_000);
  expect((await deliveries(slow.id)).filter(({ status }) => status === 'succeeded')).toEqual([]);
  await drop(slow.id);
  await drop(quick.id);
});

test.each([
  [
    'answers with a redirect to a private address',
    'redirect',
    (res: Parameters<Parameters<WebhookReceiver['behave']>[1]>[0]) =>
      res.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
  ],
  ['closes early', 'connect', (res: Parameters<Parameters<WebhookReceiver['behave']>[1]>[0]) => res.destroy()],
] as const)('an endpoint that %s has failed', async (_what, error, behaviour) => {
  const hook = await endpoint();
  receiver.behave(hook.path, behaviour);
  await send();
  const [first] = await settled(hook.id, (list) => list.length > 0);
  expect(first).toMatchObject({ status: 'failed', error });
  expect(first?.next_attempt_at).not.toBeNull();
  await drop(hook.id);
});

test('an endpoint that answers with 10 MB is read a little', async () => {
  const hook = await endpoint();
  let written = 0;
  receiver.behave(hook.path, (response) => {
    response.writeHead(200);
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const more = (): void => {
      while (written < 10 * 1024 * 1024) {
        written += chunk.length;
        if (!response.write(chunk)) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    response.on('error', () => {});
    more();
  });
  await send();
  expect(await settled(hook.id, (list) => list.length > 0)).toMatchObject([{ status: 'succeeded', http_status: 200 }]);
  expect(written).toBeLessThan(10 * 1024 * 1024);
  await drop(hook.id);
});

test('ten failures, then it comes back: nothing was lost', async () => {
  const hook = await endpoint();
  receiver.behave(hook.path, answers(...Array.from({ length: 10 }, () => 503), 200));
  const id = await send();
  const all = await receiver.until(hook.path, 11, 60_000);
  expect(all.every(({ body }) => body.includes(id))).toBe(true);
  const list = await settled(hook.id, (rows) => rows[0]?.status === 'succeeded');
  expect(list.map(({ attempt }) => attempt)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  await drop(hook.id);
});

test('after thirteen attempts it is dead, and a replay brings it', async () => {
  const hook = await endpoint();
  receiver.behave(hook.path, answers(...Array.from({ length: 13 }, () => 500), 200));
  await send();
  const list = await settled(hook.id, (rows) => rows[0]?.status === 'dead');
  expect(list).toHaveLength(13);
  expect(list[0]).toMatchObject({ attempt: 13, error: 'status_5xx', next_attempt_at: null });
  const since = new Date(Date.now() - 60_000).toISOString();
  const { body } = await client.call('webhooks.replay', {
    params: { webhook_id: hook.id },
    body: { since, status: 'dead' },
  });
  expect(body).toEqual({ queued: 1 });
  expect(await settled(hook.id, (rows) => rows[0]?.status === 'succeeded')).toHaveLength(14);
  await drop(hook.id);
});

test('410 switches an endpoint off at once, and the platform is told', async () => {
  const path = '/platform';
  const { body: made } = await platform.call('webhooks.create', {
    body: { url: `${receiver.origin}${path}`, events: ['webhook.disabled'] },
  });
  receiver.secrets.set(path, [made.secret ?? '']);
  const hook = await endpoint();
  receiver.behave(hook.path, answers(410));
  await send();
  expect(await settled(hook.id, (list) => list.length > 0)).toMatchObject([{ status: 'dead', error: 'status_410' }]);
  const { body: after } = await client.call('webhooks.get', { params: { webhook_id: hook.id } });
  expect(after).toMatchObject({ enabled: false, disabled_reason: 'failing' });
  const [told] = await receiver.until(path, 1);
  expect(told?.event).toMatchObject({ type: 'webhook.disabled', data: { webhook_id: hook.id, reason: 'gone' } });
  expect(told?.verified_by).toHaveLength(1);
  await platform.call('webhooks.delete', { params: { webhook_id: made.id } });
  await drop(hook.id);
});

describe('a rotation', () => {
  test('signs with both secrets while they overlap, and with the new one alone where they do not', async () => {
    const hook = await endpoint();
    const { body } = await client.call('webhooks.rotateSecret', {
      params: { webhook_id: hook.id },
      body: { overlap_hours: 1 },
    });
    const next = body.secret ?? '';
    receiver.secrets.set(hook.path, [hook.secret, next]);
    await send();
    const [both] = await receiver.until(hook.path, 1);
    expect(both?.verified_by).toEqual([hook.secret, next]);
    expect(String(both?.headers['webhook-signature']).split(' ')).toHaveLength(2);
    const { body: last } = await client.call('webhooks.rotateSecret', {
      params: { webhook_id: hook.id },
      body: { overlap_hours: 0 },
    });
    receiver.secrets.set(hook.path, [hook.secret, next, last.secret ?? '']);
    await send();
    const [, alone] = await receiver.until(hook.path, 2);
    expect(alone?.verified_by).toEqual([last.secret]);
    await drop(hook.id);
  });
});

describe('another URL', () => {
  test('takes the endpoint off until a test is answered with 2xx', async () => {
    const hook = await endpoint();
    const moved = `${hook.path}-moved`;
    receiver.secrets.set(moved, [hook.secret]);
    receiver.behave(moved, answers(500, 204));
    const { body: off } = await client.call('webhooks.update', {
      params: { webhook_id: hook.id },
      body: { url: `${receiver.origin}${moved}` },
    });
    expect(off).toMatchObject({ enabled: false, disabled_reason: 'url_changed' });
    await expect(
      client.call('webhooks.update', { params: { webhook_id: hook.id }, body: { enabled: true } }),
    ).rejects.toMatchObject({ code: 'invalid_request' });
    const test = () => client.call('webhooks.test', { params: { webhook_id: hook.id } });
    expect((await test()).body).toMatchObject({ status: 'failed', error: 'status_5xx', event_type: 'webhook.test' });
    expect((await client.call('webhooks.get', { params: { webhook_id: hook.id } })).body.enabled).toBe(false);
    const { body: passed } = await test();
    expect(passed).toMatchObject({ status: 'succeeded', http_status: 204 });
    expect((await client.call('webhooks.get', { params: { webhook_id: hook.id } })).body).toMatchObject({
      enabled: true,
      disabled_reason: null,
    });
    expect(receiver.at(moved).map(({ event, verified_by: by }) => [event.type, event.data['message'], by])).toEqual([
      ['webhook.test', 'hello', [hook.secret]],
      ['webhook.test', 'hello', [hook.secret]],
    ]);
    await expect(
      client.call('webhooks.replay', { params: { webhook_id: hook.id }, body: { event_ids: [passed.event_id] } }),
    ).rejects.toMatchObject({ code: 'event_not_found' });
    await drop(hook.id);
  });
});

test('what a SIGKILL takes from the queue is delivered after the restart', async () => {
  const hook = await endpoint();
  const ids: string[] = [];
  for (let n = 0; n < 8; n++) ids.push(await send(`Before the kill ${n}`));
  await runtime.kill();
  await runtime.start();
  const ends = Date.now() + 150_000;
  const seen = (): Set<string> =>
    new Set(ids.filter((id) => receiver.at(hook.path).some(({ body }) => body.includes(id))));
  while (seen().size < ids.length && Date.now() < ends) {
    await new Promise((resolve) => {
      setTimeout(resolve, 250);
    });
  }
  expect(seen().size).toBe(ids.length);
  expect(receiver.at(hook.path).every(({ verified_by: by }) => by.length === 1)).toBe(true);
  await drop(hook.id);
}, 200_000);

test('an endpoint on this machine is refused where that is not let through', async () => {
  await expect(
    client.call('webhooks.createOfTenant', {
      params: { tenant_id: tenant },
      body: { url: 'http://127.0.0.2:80/', events: ['message.sent'] },
    }),
  ).rejects.toBeInstanceOf(ApiError);
});
