import type { EventType } from '@pmail/core/events/types.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { tenantRow } from '../directory/directory.fixture.ts';
import { statement } from '../sql.ts';
import { deleteEndpoint } from './endpoints.ts';
import { fanOut, sweepWebhooks } from './fan-out.ts';
import { Hooks } from './webhooks.fixture.ts';

/** Who is told of what, once. */

let hooks: Hooks;

beforeEach(async () => {
  hooks = await Hooks.create();
});

/** Whether an endpoint is to get an event. */
async function gets(endpoint: Parameters<Hooks['work']>[0], event: string): Promise<boolean> {
  return (await hooks.work(endpoint)).some(({ event_id: id }) => id === event);
}

describe('an event is told to', () => {
  test('endpoints of its tenant and of the platform that are on', async () => {
    const other = tenantRow('other');
    await hooks.addTenant(other);
    const own = await hooks.endpoint();
    const platform = await hooks.endpoint({ tenant_id: null });
    const foreign = await hooks.endpoint({ tenant_id: other.id });
    const off = await hooks.endpoint({ enabled: 0, disabled_reason: 'manual' });
    const event = await hooks.event();
    await fanOut(hooks.world, event);
    expect(await Promise.all([own, platform, foreign, off].map((id) => gets(id, event)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(hooks.queued()).toEqual([event, event]);
  });

  test.each<[string, string[], EventType, boolean]>([
    ['the type itself', ['message.sent'], 'message.sent', true],
    ['one of several', ['identity.created', 'message.sent'], 'message.sent', true],
    ['all', ['*'], 'suppression.created', true],
    ['another type', ['message.sent'], 'message.delivered', false],
    ['a part of the type', ['message.'], 'message.sent', false],
  ])('those who named %s', async (_what, types, type, expected) => {
    const id = await hooks.endpoint({ event_types_json: JSON.stringify(types) });
    const event = await hooks.event(type);
    await fanOut(hooks.world, event);
    expect(await gets(id, event)).toBe(expected);
  });

  test('those who named its identity, or none; of no identity only to those who named none', async () => {
    const [ann, bob] = [await hooks.identity('ann'), await hooks.identity('bob')];
    const any = await hooks.endpoint();
    const anns = await hooks.endpoint({ identity_ids_json: JSON.stringify([ann]) });
    const both = await hooks.endpoint({ identity_ids_json: JSON.stringify([bob, ann]) });
    const bobs = await hooks.endpoint({ identity_ids_json: JSON.stringify([bob]) });
    const all = [any, anns, both, bobs];
    const ofAnn = await hooks.event('message.sent', { identity_id: ann });
    const ofNobody = await hooks.event('tenant.policy_updated');
    for (const event of [ofAnn, ofNobody]) await fanOut(hooks.world, event);
    expect(await Promise.all(all.map((id) => gets(id, ofAnn)))).toEqual([true, true, true, false]);
    expect(await Promise.all(all.map((id) => gets(id, ofNobody)))).toEqual([true, false, false, false]);
  });

  test('the platform alone, when it is of the system identity or says that an endpoint was switched off', async () => {
    const system = await hooks.identity('system', { is_system: 1 });
    const own = await hooks.endpoint();
    const named = await hooks.endpoint({ identity_ids_json: JSON.stringify([system]) });
    const platform = await hooks.endpoint({ tenant_id: null });
    const ofSystem = await hooks.event('message.sent', { identity_id: system });
    const disabled = await hooks.event('webhook.disabled');
    for (const event of [ofSystem, disabled]) {
      await fanOut(hooks.world, event);
      expect(await Promise.all([own, named, platform].map((id) => gets(id, event)))).toEqual([false, false, true]);
    }
  });

  test('the platform, when it is of no tenant', async () => {
    const own = await hooks.endpoint();
    const platform = await hooks.endpoint({ tenant_id: null });
    const event = await hooks.event('webhook.disabled', { tenant_id: null });
    await fanOut(hooks.world, event);
    expect(await Promise.all([own, platform].map((id) => gets(id, event)))).toEqual([false, true]);
  });

  test('nobody, and is done with then', async () => {
    const event = await hooks.event();
    await fanOut(hooks.world, event);
    const late = await hooks.endpoint();
    await fanOut(hooks.world, event);
    expect(await hooks.work(late)).toEqual([]);
  });
});

describe('telling of an event', () => {
  test('twice makes one delivery, and one that has ended stays ended', async () => {
    const id = await hooks.endpoint();
    const [event = 'evt_'] = await hooks.told(1);
    await fanOut(hooks.world, event);
    expect(await hooks.work(id)).toEqual([
      { event_id: event, attempt: 1, step: 1, due_at: hooks.now, taken_until: null },
    ]);
    await hooks.run();
    expect(await hooks.work(id)).toEqual([]);
    await fanOut(hooks.world, event);
    await hooks.run();
    expect(await hooks.attempts(id)).toHaveLength(1);
    expect(hooks.posts).toHaveLength(1);
  });

  test('many times at once makes one', async () => {
    const id = await hooks.endpoint();
    const event = await hooks.event();
    await Promise.all(Array.from({ length: 10 }, () => fanOut(hooks.world, event)));
    await hooks.run();
    expect(await hooks.attempts(id)).toHaveLength(1);
    expect(hooks.posts).toHaveLength(1);
  });

  test('that there is none of does nothing', async () => {
    await hooks.endpoint();
    await fanOut(hooks.world, 'evt_01JABCDEFGHJKMNPQRSTVWXYZ0');
    expect(hooks.queued()).toEqual([]);
  });

  test('to an endpoint that is deleted meanwhile leaves the others theirs', async () => {
    const gone = await hooks.endpoint();
    const stays = await hooks.endpoint();
    const event = await hooks.event();
    const { db } = hooks.world;
    const racing = {
      ...hooks.world,
      db: {
        batch: async (statements: Parameters<typeof db.batch>[0]) => {
          if (statements.length > 1) await deleteEndpoint(db, gone, { ...AUDIT, tenant_id: hooks.tenant.id });
          return db.batch(statements);
        },
      },
    };
    await fanOut(racing, event);
    expect([await gets(gone, event), await gets(stays, event)]).toEqual([false, true]);
  });
});

const AUDIT = {
  id: 'aud_01JABCDEFGHJKMNPQRSTVWXYZ0',
  tenant_id: null,
  actor_key_id: null,
  action: 'webhook.delete',
  target_type: null,
  target_id: null,
  details: null,
  request_id: null,
  at: 0,
} as const;

const MINUTE = 60_000;
const YEAR = 365 * 86_400_000;

describe('the sweep', () => {
  test('tells of events that the queue has lost, from a minute to an hour after they happened', async () => {
    const id = await hooks.endpoint();
    const ages = [0, MINUTE - 1, MINUTE, 30 * MINUTE, 60 * MINUTE, 60 * MINUTE + 1];
    const events = await Promise.all(ages.map((age) => hooks.event('message.sent', { at: hooks.now - age })));
    expect(await sweepWebhooks(hooks.world)).toBe(3);
    // The oldest first.
    expect(hooks.queued()).toEqual([4, 3, 2].map((n) => `fanout ${events[n]}`));
    await hooks.run();
    expect(new Set((await hooks.attempts(id)).map(({ event_id: event }) => event))).toEqual(
      new Set(events.slice(2, 5)),
    );
    expect(await sweepWebhooks(hooks.world)).toBe(0);
  });

  test('delivers what was queued and never came, a minute after its time', async () => {
    const id = await hooks.endpoint();
    hooks.queueIsDown = true;
    const event = await hooks.event();
    await expect(fanOut(hooks.world, event)).rejects.toThrow('away');
    hooks.queueIsDown = false;
    hooks.now += MINUTE - 1;
    expect(await sweepWebhooks(hooks.world)).toBe(0);
    hooks.now += 1;
    expect(await sweepWebhooks(hooks.world)).toBe(1);
    await hooks.run();
    expect(await hooks.attempts(id)).toMatchObject([{ status: 'succeeded' }]);
  });

  test('takes up again what was taken up and never written down, when its lease is over', async () => {
    const id = await hooks.endpoint();
    const [event = 'evt_'] = await hooks.told(1);
    expect(await hooks.take(id, event)).toMatchObject({ attempt: 1 });
    hooks.jobs.length = 0;
    hooks.now += LIMITS.webhook_lease_ms - 1;
    expect(await sweepWebhooks(hooks.world)).toBe(0);
    hooks.now += 1;
    expect(await sweepWebhooks(hooks.world)).toBe(1);
    await hooks.run();
    expect(await hooks.attempts(id)).toMatchObject([{ attempt: 1, status: 'succeeded' }]);
  });

  test('finds what was told or put off by a clock that ran a year ahead (K1)', async () => {
    const id = await hooks.endpoint();
    const [event = 'evt_'] = await hooks.told(1);
    hooks.now += YEAR;
    await hooks.record(id, await hooks.take(id, event), 'timeout');
    const ahead = await hooks.event();
    hooks.jobs.length = 0;
    hooks.now -= YEAR;
    expect(await sweepWebhooks(hooks.world)).toBe(1);
    expect(hooks.queued()).toEqual([`fanout ${ahead}`]);
    hooks.now += MINUTE;
    expect(await sweepWebhooks(hooks.world)).toBe(2);
    await hooks.run();
    const attempts = (await hooks.attempts(id)).filter(
      ({ event_id, status }) => event_id === event && status === 'succeeded',
    );
    expect(attempts).toMatchObject([{ attempt: 2 }]);
  });

  test('delivers after a wait that is longer than a queue can hold', async () => {
    const id = await hooks.endpoint();
    const [event = 'evt_'] = await hooks.told(1);
    hooks.jobs.length = 0;
    await hooks.db.batch([statement('UPDATE webhook_work SET step = 12')]);
    const { next_attempt_at: next } = await hooks.record(id, await hooks.take(id, event), 'timeout');
    expect((next ?? 0) - hooks.now).toBe(19 * 3_600_000);
    expect(hooks.queued()).toEqual([]);
    hooks.now = (next ?? 0) + MINUTE;
    expect(await sweepWebhooks(hooks.world)).toBe(1);
    await hooks.run();
    expect(await hooks.attempts(id)).toMatchObject([{ status: 'failed' }, { status: 'succeeded' }]);
  });

  test('gives every endpoint its turn, however long the list of another is', async () => {
    const busy = await Promise.all(Array.from({ length: 40 }, () => hooks.endpoint()));
    await hooks.told(20);
    const late = await hooks.endpoint();
    hooks.now += MINUTE;
    const [event = 'evt_'] = await hooks.told(1);
    hooks.jobs.length = 0;
    hooks.now += 2 * MINUTE;
    expect(await sweepWebhooks(hooks.world)).toBe(250);
    expect(hooks.queued()).toContain(event);
    const of = (id: string): number =>
      hooks.jobs.filter(({ job }) => job.kind === 'deliver' && job.endpoint_id === id).length;
    expect(of(late)).toBe(1);
    for (const id of busy) {
      expect(of(id)).toBeGreaterThan(0);
      expect(of(id)).toBeLessThanOrEqual(LIMITS.webhook_parallel_count_max);
    }
  });
});
