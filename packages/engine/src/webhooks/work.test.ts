import type { EventId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { auditEntry } from '../directory/directory.fixture.ts';
import { statement } from '../sql.ts';
import { deliver } from './deliver.ts';
import { deleteEndpoint, type EndpointId } from './endpoints.ts';
import { Hooks } from './webhooks.fixture.ts';

/** Taking deliveries up: one at a time each, a few at once for an endpoint, and the next when one has ended. */

const LEASE = LIMITS.webhook_lease_ms;
const YEAR = 365 * 86_400_000;
const PLACES = LIMITS.webhook_parallel_count_max;

let hooks: Hooks;
let endpoint: EndpointId;

beforeEach(async () => {
  hooks = await Hooks.create();
  endpoint = await hooks.endpoint();
});

describe('a delivery', () => {
  let event: EventId;

  beforeEach(async () => {
    [event = event] = await hooks.told(1, 'message.bounced');
  });

  test('is taken up by one of many', async () => {
    const taken = await Promise.all(Array.from({ length: 10 }, () => hooks.take(endpoint, event)));
    expect(taken.filter((work) => work !== undefined)).toEqual([
      { event_id: event, event_type: 'message.bounced', attempt: 1, step: 1 },
    ]);
    expect(await hooks.work(endpoint)).toMatchObject([{ taken_until: hooks.now + LEASE }]);
  });

  test('is taken up again when its lease is over, and not a moment before', async () => {
    await hooks.take(endpoint, event);
    hooks.now += LEASE - 1;
    expect(await hooks.take(endpoint, event)).toBeUndefined();
    hooks.now += 1;
    expect(await hooks.take(endpoint, event)).toMatchObject({ attempt: 1, step: 1 });
  });

  test('is taken up again when its lease was given by a clock that ran ahead (K1)', async () => {
    hooks.now += YEAR;
    await hooks.take(endpoint, event);
    hooks.now -= YEAR;
    expect(await hooks.take(endpoint, event)).toMatchObject({ attempt: 1, step: 1 });
  });

  test('waits for its time, but for the second that queues count in', async () => {
    await hooks.record(endpoint, await hooks.take(endpoint, event), 'timeout');
    hooks.now += 30_000 - 1_001;
    expect(await hooks.take(endpoint, event)).toBeUndefined();
    hooks.now += 1;
    expect(await hooks.take(endpoint, event)).toMatchObject({ attempt: 2, step: 2 });
  });

  test('that has ended, that never was, or whose endpoint is gone is not taken up', async () => {
    const other = await hooks.event();
    expect(await hooks.take(endpoint, other)).toBeUndefined();
    expect(await hooks.take('whk_01JABCDEFGHJKMNPQRSTVWXYZ0', event)).toBeUndefined();
    await hooks.record(endpoint, await hooks.take(endpoint, event), null);
    expect(await hooks.take(endpoint, event)).toBeUndefined();
    const [next = event] = await hooks.told(1);
    await deleteEndpoint(hooks.db, endpoint, auditEntry('webhook.delete', hooks.tenant.id));
    expect(await hooks.take(endpoint, next)).toBeUndefined();
  });

  test('whose endpoint goes while it is under way leaves nothing behind', async () => {
    const work = await hooks.take(endpoint, event);
    if (work === undefined) throw new Error('not taken up');
    const row = await hooks.row(endpoint);
    await deleteEndpoint(hooks.db, endpoint, auditEntry('webhook.delete', hooks.tenant.id));
    await deliver(hooks.world, endpoint, work);
    expect(hooks.posts).toEqual([]);
    const { recordAttempt } = await import('./record.ts');
    await recordAttempt(hooks.world, row, work, { error: 'timeout', http_status: null, started: 0, duration_ms: 1 });
    expect([await hooks.attempts(endpoint), await hooks.work(endpoint)]).toEqual([[], []]);
  });
});

describe('an endpoint', () => {
  test(`has at most ${PLACES} attempts under way, whatever else waits`, async () => {
    const events = await hooks.told(PLACES + 3);
    const other = await hooks.endpoint();
    const taken = await Promise.all(events.map((event) => hooks.take(endpoint, event)));
    expect(taken.map((work) => work !== undefined)).toEqual([
      ...Array.from({ length: PLACES }, () => true),
      false,
      false,
      false,
    ]);
    const [own = events[0]] = await hooks.told(1);
    expect(await hooks.take(other, own as EventId)).toBeDefined();
    // A place whose lease is over is free.
    hooks.now += LEASE;
    expect(await hooks.take(endpoint, events.at(-1) as EventId)).toBeDefined();
  });

  test('is given its next delivery when one has ended, well or badly, the longest due first', async () => {
    const events = await hooks.told(PLACES + 2);
    await hooks.db.batch(
      events.map((event, n) => statement('UPDATE webhook_work SET due_at = due_at - ? WHERE event_id = ?', n, event)),
    );
    const running = events.slice(0, PLACES);
    const works = await Promise.all(running.map((event) => hooks.take(endpoint, event)));
    hooks.jobs.length = 0;
    await hooks.record(endpoint, works[0], null);
    expect(hooks.queued()).toEqual([events[PLACES + 1]]);
    await hooks.take(endpoint, events[PLACES + 1] as EventId);
    hooks.jobs.length = 0;
    await hooks.record(endpoint, works[1], 'status_5xx');
    expect(hooks.queued()).toEqual([events[PLACES], running[1]]);
  });

  test('has all its places filled again after several attempts ended at once', async () => {
    const events = await hooks.told(PLACES * 3);
    const works = await Promise.all(events.slice(0, PLACES).map((event) => hooks.take(endpoint, event)));
    hooks.jobs.length = 0;
    // All of them end before anything that they queued is run.
    for (const work of works) await hooks.record(endpoint, work, null);
    const before = hooks.jobs.splice(0);
    await Promise.all(
      before.map(async ({ job }) => {
        if (job.kind === 'deliver') await hooks.take(job.endpoint_id, job.event_id);
      }),
    );
    const under = (await hooks.work(endpoint)).filter(({ taken_until: until }) => until !== null);
    expect(under).toHaveLength(PLACES);
  });

  test('gets a long list done through one job, with its places never over-filled', async () => {
    const events = await hooks.told(50);
    hooks.jobs.length = 0;
    await hooks.consume({ v: 1, kind: 'deliver', endpoint_id: endpoint, event_id: events[20] as EventId });
    await hooks.run();
    expect(await hooks.attempts(endpoint)).toHaveLength(50);
    expect(hooks.posts).toHaveLength(50);
    expect(await hooks.work(endpoint)).toEqual([]);
  });

  test('gets a long list done in spite of failures', async () => {
    await hooks.told(20);
    hooks.answers.push(...Array.from({ length: 20 }, () => 500));
    await hooks.run();
    expect(hooks.posts).toHaveLength(20);
    hooks.now += 30_000;
    await hooks.run();
    expect((await hooks.attempts(endpoint)).filter(({ status }) => status === 'succeeded')).toHaveLength(20);
  });
});
