import { env } from 'cloudflare:workers';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { HookLab, signatureOf } from './hooks.ts';
import { accepted, letter, until } from './mail.ts';
import { keepStorage } from './storage.ts';
import { audited, call, sql } from './support.ts';

/** Deliveries in the runtime itself: what happens is told to those who want it, by real queues. */

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

describe('what happens', () => {
  test('in a mailbox is posted as it was serialised, signed, and without following redirects (V10)', async () => {
    const mine = await hooks.hook(['message.sent', 'message.delivered'], { identity_ids: [hooks.lab.ann] });
    const bobs = await hooks.hook(['*'], { identity_ids: [hooks.lab.bob] });
    const types = await hooks.hook(['message.bounced']);
    const all = await hooks.hook(['*'], {}, null);
    const { id } = await accepted(hooks.lab.key, hooks.lab.ann, letter({ subject: 'Größe 😀' }));
    const list = await hooks.comes(mine, 2);
    expect(list).toMatchObject([
      { webhook_id: mine.id, attempt: 1, status: 'succeeded', http_status: 200, error: null, next_attempt_at: null },
      { attempt: 1, status: 'succeeded' },
    ]);
    expect(new Set(hooks.events(mine).map(({ type }) => type))).toEqual(new Set(['message.sent', 'message.delivered']));
    for (const posted of hooks.at(mine)) {
      expect(posted.redirect).toBe('manual');
      expect([...posted.headers.keys()].sort()).toEqual([
        'content-type',
        'user-agent',
        'webhook-id',
        'webhook-signature',
        'webhook-timestamp',
      ]);
      expect(posted.headers.get('webhook-signature')).toBe(await signatureOf(posted, [mine.secret ?? '']));
      const event = JSON.parse(posted.body) as EventEnvelope;
      expect(posted.headers.get('webhook-id')).toBe(event.id);
      expect(await call(hooks.lab.key, 'events.get', { params: { event_id: event.id } })).toEqual(event);
    }
    expect(JSON.stringify(hooks.events(mine))).toContain(id);
    await until(() =>
      expect(hooks.events(all).map(({ type }) => type)).toEqual(expect.arrayContaining(['message.sent'])),
    );
    expect([hooks.at(bobs), hooks.at(types)]).toEqual([[], []]);
  });

  test('to a tenant and to no identity is told only to those who named none, soon, without a sweep', async () => {
    const any = await hooks.hook(['suppression.created']);
    const named = await hooks.hook(['suppression.created'], { identity_ids: [hooks.lab.ann] });
    const platform = await hooks.hook(['suppression.created'], {}, null);
    const address = await hooks.something();
    await hooks.comes(any, 1);
    await hooks.comes(platform, 1);
    const [event] = hooks.events(any);
    expect(event).toMatchObject({ type: 'suppression.created', tenant_id: hooks.lab.tenant, identity_id: null });
    expect(JSON.stringify(event)).not.toContain(address);
    expect(await hooks.attempts(named)).toEqual([]);
  });

  test('that the queue has lost is told by the cron', async () => {
    const any = await hooks.hook(['suppression.created']);
    const lost = vi.spyOn(env.Q_WEBHOOKS, 'send').mockRejectedValue(new Error('the queue is away'));
    await hooks.something();
    lost.mockRestore();
    await runCron('* * * * *', env);
    expect(await hooks.attempts(any)).toEqual([]);
    await sql("UPDATE event_index SET occurred_at = occurred_at - 61000 WHERE type = 'suppression.created'");
    await runCron('* * * * *', env);
    await hooks.comes(any, 1);
  });

  test('while an endpoint is off is not told, then or later', async () => {
    const off = await hooks.hook(['suppression.created']);
    await call(hooks.root, 'webhooks.update', { params: { webhook_id: off.id }, body: { enabled: false } });
    const on = await hooks.hook(['suppression.created']);
    await hooks.something();
    await hooks.comes(on, 1);
    await call(hooks.root, 'webhooks.update', { params: { webhook_id: off.id }, body: { enabled: true } });
    await hooks.something();
    await hooks.comes(on, 2);
    await hooks.comes(off, 1);
  });
});

describe('an endpoint', () => {
  test('that fails is tried again later, and its failures are counted until it succeeds (V10)', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    hooks.net.endpoints.set(hooked.url, () => new Response('no', { status: 503 }));
    await hooks.something();
    const [first] = await hooks.comes(hooked, 1);
    expect(first).toMatchObject({ status: 'failed', http_status: 503, error: 'status_5xx', attempt: 1 });
    const wait = Date.parse(first?.next_attempt_at ?? '') - Date.parse(first?.created_at ?? '');
    expect(wait).toBeGreaterThan(26_000);
    expect(wait).toBeLessThan(36_000);
    const failures = () => sql('SELECT consecutive_failures AS n FROM webhook_endpoints WHERE id = ?', hooked.id);
    expect(await failures()).toEqual([{ n: 1 }]);
    hooks.net.endpoints.delete(hooked.url);
    await sql('UPDATE webhook_work SET due_at = due_at - 120000');
    await runCron('* * * * *', env);
    expect(await hooks.comes(hooked, 2)).toMatchObject([{ attempt: 2, status: 'succeeded' }, { attempt: 1 }]);
    expect(await failures()).toEqual([{ n: 0 }]);
    expect(new Set(hooks.at(hooked).map(({ body }) => body)).size).toBe(1);
  });

  test('that fails for the hundredth time after a day is switched off, and the platform alone is told', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    const curious = await hooks.hook(['webhook.disabled', '*']);
    const platform = await hooks.hook(['webhook.disabled'], {}, null);
    await sql(
      'UPDATE webhook_endpoints SET consecutive_failures = 99, first_failure_at = ? WHERE id = ?',
      Date.now() - 86_400_000,
      hooked.id,
    );
    hooks.net.endpoints.set(hooked.url, () => new Response(null, { status: 500 }));
    await hooks.something();
    await hooks.comes(platform, 1);
    const shown = await call(hooks.root, 'webhooks.get', { params: { webhook_id: hooked.id } });
    expect(shown).toMatchObject({ enabled: false, disabled_reason: 'failing' });
    expect(hooks.events(platform)).toMatchObject([
      { type: 'webhook.disabled', tenant_id: hooks.lab.tenant, data: { webhook_id: hooked.id, reason: 'failing' } },
    ]);
    await hooks.something();
    await hooks.comes(curious, 2);
    expect(hooks.events(curious).map(({ type }) => type)).toEqual(['suppression.created', 'suppression.created']);
    expect(await hooks.attempts(hooked)).toHaveLength(1);
    const on = await call(hooks.root, 'webhooks.update', {
      params: { webhook_id: hooked.id },
      body: { enabled: true },
    });
    expect(on).toMatchObject({ enabled: true, disabled_reason: null });
    expect(await sql('SELECT consecutive_failures AS n FROM webhook_endpoints WHERE id = ?', hooked.id)).toEqual([
      { n: 0 },
    ]);
  });

  test('whose secret was replaced gets both signatures, the new one first', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    const turned = await call(hooks.root, 'webhooks.rotateSecret', { params: { webhook_id: hooked.id }, body: {} });
    await hooks.something();
    await hooks.comes(hooked, 1);
    expect(hooks.at(hooked)[0]?.headers.get('webhook-signature')).toBe(
      await signatureOf(hooks.at(hooked)[0], [turned.secret ?? '', hooked.secret ?? '']),
    );
    await sql('UPDATE webhook_endpoints SET prev_secret_expires_at = 1 WHERE id = ?', hooked.id);
    await hooks.something();
    await hooks.comes(hooked, 2);
    expect(hooks.at(hooked)[1]?.headers.get('webhook-signature')).toBe(
      await signatureOf(hooks.at(hooked)[1], [turned.secret ?? '']),
    );
  });

  test('whose secret was replaced by two at once gives each a secret that signs', async () => {
    const hooked = await hooks.hook(['suppression.created']);
    const turned = await Promise.all(
      [1, 2].map(() => call(hooks.root, 'webhooks.rotateSecret', { params: { webhook_id: hooked.id }, body: {} })),
    );
    await hooks.something();
    await hooks.comes(hooked, 1);
    const values = hooks.at(hooked)[0]?.headers.get('webhook-signature')?.split(' ') ?? [];
    expect(values).toHaveLength(2);
    const alone = await Promise.all(turned.map(({ secret }) => signatureOf(hooks.at(hooked)[0], [secret ?? ''])));
    expect(new Set(values)).toEqual(new Set(alone));
    expect(await audited(hooked.id)).toEqual(['webhook.create', 'webhook.rotate_secret', 'webhook.rotate_secret']);
  });
});
