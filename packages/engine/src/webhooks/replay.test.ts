import type { EventId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { auditEntry, rows, tenantRow } from '../directory/directory.fixture.ts';
import { statement } from '../sql.ts';
import { deleteEndpoint, type EndpointId } from './endpoints.ts';
import { deleteOldDeliveries, listDeliveries, type ReplayRequest, replay, replayable } from './replay.ts';
import { Hooks } from './webhooks.fixture.ts';

/** Deliveries once more: which events, in which order, and how their attempts count on. */

const DAY = 86_400_000;

let hooks: Hooks;
let endpoint: EndpointId;

beforeEach(async () => {
  hooks = await Hooks.create();
  endpoint = await hooks.endpoint();
});

/** Ids of the events that a request brings, or undefined when it is refused. */
async function brings(request: ReplayRequest, id = endpoint): Promise<EventId[] | undefined> {
  const events = await replayable(hooks.db, await hooks.row(id), request, hooks.now);
  return events?.map(({ id: event }) => event);
}

/** Everything from a time on. */
const from = (since: number, changes: Partial<Extract<ReplayRequest, { since: number }>> = {}): ReplayRequest => ({
  since,
  until: null,
  status: null,
  ...changes,
});

async function again(events: EventId[], id = endpoint): Promise<void> {
  const found = await replayable(hooks.db, await hooks.row(id), { event_ids: events }, hooks.now);
  if (found === undefined) throw new Error('not replayable');
  const audit = auditEntry('webhook.replay', hooks.tenant.id);
  await replay(hooks.db, hooks.world.queue, await hooks.row(id), found, hooks.now, audit);
}

describe('a replay brings', () => {
  test('events from a time on, before another, the oldest first', async () => {
    const at = [4, 3, 2, 1].map((age) => hooks.now - age * DAY);
    const events: EventId[] = [];
    for (const time of at) events.push(await hooks.event('message.sent', { at: time }));
    const [a, b, c, d] = events as [EventId, EventId, EventId, EventId];
    expect(await brings(from(0))).toEqual([a, b, c, d]);
    expect(await brings(from(at[1] ?? 0))).toEqual([b, c, d]);
    expect(await brings(from((at[1] ?? 0) + 1, { until: at[3] ?? 0 }))).toEqual([c]);
    expect(await brings(from(hooks.now))).toEqual([]);
  });

  test('none older than thirty days, whether by time or by id', async () => {
    const age = LIMITS.webhook_replay_age_ms_max;
    const old = await hooks.event('message.sent', { at: hooks.now - age });
    const young = await hooks.event('message.sent', { at: hooks.now - age + 1 });
    expect(await brings(from(0))).toEqual([young]);
    expect(await brings({ event_ids: [young] })).toEqual([young]);
    expect(await brings({ event_ids: [young, old] })).toBeUndefined();
  });

  test(`at most ${LIMITS.webhook_replay_events_max}, and none of those in vain`, async () => {
    const system = await hooks.identity('system', { is_system: 1 });
    const many = LIMITS.webhook_replay_events_max;
    const insert = (type: string, identity: string | null, at: string) =>
      statement(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO event_index (id, tenant_id, identity_id, type, owner_kind, owner_id, payload_json, occurred_at)
         SELECT 'evt_' || ? || printf('%025d', i), ?, ?, ?, 'platform', 'platform', '{}', ? + i FROM n`,
        many + 10,
        at,
        hooks.tenant.id,
        identity,
        type,
        hooks.now - DAY,
      );
    // Those that the endpoint is never told of come first, so that they would fill the bound.
    await hooks.db.batch([insert('message.sent', system, '0'), insert('webhook.disabled', null, '1')]);
    await hooks.db.batch([insert('message.sent', null, '2')]);
    expect(await brings(from(0))).toHaveLength(many);
    const platform = await hooks.endpoint({ tenant_id: null });
    expect(await brings(from(0), platform)).toHaveLength(many);
  });

  test('what the endpoint would be told of today: its tenant, its types, its identities', async () => {
    const other = tenantRow('other');
    await hooks.addTenant(other);
    const ann = await hooks.identity('ann');
    const system = await hooks.identity('system', { is_system: 1 });
    const foreign = await hooks.event('message.sent', { tenant_id: other.id });
    const sent = await hooks.event('message.sent');
    const bounced = await hooks.event('message.bounced');
    const anns = await hooks.event('message.sent', { identity_id: ann });
    const systems = await hooks.event('message.sent', { identity_id: system });
    const disabled = await hooks.event('webhook.disabled');
    const tested = await hooks.event('webhook.test');
    const all = [foreign, sent, bounced, anns, systems, disabled, tested];
    const platform = await hooks.endpoint({ tenant_id: null });
    const typed = await hooks.endpoint({ event_types_json: '["message.bounced","message.delivered"]' });
    const named = await hooks.endpoint({ identity_ids_json: JSON.stringify([ann]) });
    const expected: [EndpointId, EventId[]][] = [
      [endpoint, [sent, bounced, anns]],
      [platform, [foreign, sent, bounced, anns, systems, disabled]],
      [typed, [bounced]],
      [named, [anns]],
    ];
    for (const [id, wanted] of expected) {
      expect((await brings(from(0), id))?.sort()).toEqual([...wanted].sort());
      for (const event of all) {
        expect(await brings({ event_ids: [event] }, id)).toEqual(wanted.includes(event) ? [event] : undefined);
      }
    }
    expect(await brings({ event_ids: ['evt_01JABCDEFGHJKMNPQRSTVWXYZ0'] })).toBeUndefined();
    expect(await brings({ event_ids: [sent, sent, sent] })).toEqual([sent]);
  });

  test('those whose last attempt at this endpoint ended so', async () => {
    const [good, bad, gone, open] = (await hooks.told(4)) as [EventId, EventId, EventId, EventId];
    const never = await hooks.event();
    const other = await hooks.endpoint();
    await hooks.record(endpoint, await hooks.take(endpoint, good), 'timeout');
    await hooks.record(endpoint, await hooks.take(endpoint, bad), 'timeout');
    await hooks.record(endpoint, await hooks.take(endpoint, gone), 'event_unavailable');
    hooks.now += 30_000;
    await hooks.record(endpoint, await hooks.take(endpoint, good), null);
    expect(await brings(from(0, { status: 'succeeded' }))).toEqual([good]);
    expect(await brings(from(0, { status: 'failed' }))).toEqual([bad]);
    expect(await brings(from(0, { status: 'dead' }))).toEqual([gone]);
    expect((await brings(from(0)))?.sort()).toEqual([good, bad, gone, open, never].sort());
    expect(await brings(from(0, { status: 'succeeded' }), other)).toEqual([]);
  });
});

describe('an event that is replayed', () => {
  test('is delivered again, its attempts counted on and its schedule from the start', async () => {
    const [event] = (await hooks.told(1)) as [EventId];
    hooks.answers.push(500, 500, 200, 500, 200);
    await hooks.run();
    for (const wait of [30_000, 120_000]) {
      hooks.now += wait;
      await hooks.run();
    }
    await again([event]);
    expect(await hooks.work(endpoint)).toMatchObject([{ attempt: 4, step: 1, due_at: hooks.now }]);
    await hooks.run();
    hooks.now += 30_000;
    await hooks.run();
    expect((await hooks.attempts(endpoint)).map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'succeeded'],
      [4, 'failed'],
      [5, 'succeeded'],
    ]);
    expect(new Set(hooks.posts.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([event]));
  });

  test('while it waits for its next attempt comes now, once', async () => {
    const [event] = (await hooks.told(1)) as [EventId];
    hooks.answers.push(500);
    await hooks.run();
    hooks.now += 5_000;
    await again([event]);
    await again([event]);
    expect(await hooks.work(endpoint)).toMatchObject([{ attempt: 2, step: 1, due_at: hooks.now }]);
    await hooks.run();
    hooks.now += 60_000;
    await hooks.run();
    expect(hooks.posts).toHaveLength(2);
  });

  test('while an attempt is under way leaves that one alone', async () => {
    const [event] = (await hooks.told(1)) as [EventId];
    const work = await hooks.take(endpoint, event);
    hooks.now += 1_000;
    await again([event]);
    expect(await hooks.take(endpoint, event)).toBeUndefined();
    await hooks.record(endpoint, work, null);
    expect(await hooks.work(endpoint)).toEqual([]);
  });

  test('after its attempts were forgotten begins at one', async () => {
    const [event] = (await hooks.told(1)) as [EventId];
    await hooks.run();
    expect(await deleteOldDeliveries(hooks.db, hooks.now + 1, 10)).toBe(false);
    await again([event]);
    await hooks.run();
    expect(await hooks.attempts(endpoint)).toMatchObject([{ attempt: 1 }]);
  });

  test('with a thousand others starts few of them, and each that ends brings the next', async () => {
    const events: EventId[] = [];
    for (let n = 0; n < 120; n++) events.push(await hooks.event());
    await again(events);
    expect(await hooks.work(endpoint)).toHaveLength(120);
    expect(hooks.jobs).toHaveLength(LIMITS.webhook_parallel_count_max);
    await hooks.run();
    expect(hooks.posts).toHaveLength(120);
    expect(await hooks.work(endpoint)).toEqual([]);
  });

  test('at an endpoint that goes meanwhile is dropped', async () => {
    const [event] = (await hooks.told(1)) as [EventId];
    const row = await hooks.row(endpoint);
    await deleteEndpoint(hooks.db, endpoint, auditEntry('webhook.delete', hooks.tenant.id));
    const audit = auditEntry('webhook.replay', hooks.tenant.id);
    await replay(hooks.db, hooks.world.queue, row, [{ id: event, type: 'message.sent' }], hooks.now, audit);
    await hooks.run();
    expect([hooks.posts, await hooks.work(endpoint)]).toEqual([[], []]);
  });
});

describe('attempts', () => {
  test('are listed newest first, by status, type and time', async () => {
    const [a] = (await hooks.told(1, 'message.sent')) as [EventId];
    const [b] = (await hooks.told(1, 'message.bounced')) as [EventId];
    await hooks.record(endpoint, await hooks.take(endpoint, a), 'timeout');
    hooks.now += 30_000;
    const middle = hooks.now;
    await hooks.record(endpoint, await hooks.take(endpoint, b), null);
    hooks.now += 1_000;
    await hooks.record(endpoint, await hooks.take(endpoint, a), null);
    const list = async (filter: Parameters<typeof listDeliveries>[2], limit = 10) =>
      (await listDeliveries(hooks.db, endpoint, filter, limit, null)).map(({ event_id: id, attempt }) => [id, attempt]);
    expect(await list({})).toEqual([
      [a, 2],
      [b, 1],
      [a, 1],
    ]);
    expect(await list({}, 2)).toHaveLength(2);
    expect(await list({ status: 'failed' })).toEqual([[a, 1]]);
    expect(await list({ event_type: 'message.bounced' })).toEqual([[b, 1]]);
    expect(await list({ after: middle })).toEqual([[a, 2]]);
    const [last] = await listDeliveries(hooks.db, endpoint, {}, 1, null);
    const rest = await listDeliveries(hooks.db, endpoint, {}, 10, { at: last?.created_at ?? 0, id: last?.id ?? '' });
    expect(rest).toHaveLength(2);
    expect(await listDeliveries(hooks.db, await hooks.endpoint(), {}, 10, null)).toEqual([]);
  });

  test('are forgotten after their time, a few in each run', async () => {
    await hooks.told(5);
    await hooks.run();
    expect(await deleteOldDeliveries(hooks.db, hooks.now, 10)).toBe(false);
    expect(await hooks.attempts(endpoint)).toHaveLength(5);
    expect(await deleteOldDeliveries(hooks.db, hooks.now + 1, 3)).toBe(true);
    expect(await hooks.attempts(endpoint)).toHaveLength(2);
    expect(await deleteOldDeliveries(hooks.db, hooks.now + 1, 3)).toBe(false);
    expect(await rows(hooks.db, 'SELECT 1 FROM webhook_deliveries')).toEqual([]);
  });
});
