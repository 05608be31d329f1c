import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { auditStatement } from '../directory/audit.ts';
import { auditEntry } from '../directory/directory.fixture.ts';
import { DAY, SECOND } from '../mailbox/mailbox.fixture.ts';
import { accepted, attempt, report } from '../mailbox/transport.fixture.ts';
import { consumeEvent } from './event.ts';
import { Service, type ServiceOptions } from './service.fixture.ts';

/** Four complaints in a thousand outcomes, or eleven bounces in two hundred, pause an identity once. */

let service: Service;
let reports = 0;

/** A report of the kind about a message of its own. */
async function about(kind: Parameters<typeof report>[1]): Promise<DeliveryEvent> {
  const n = ++reports;
  const recipient = `r${n}@example.net`;
  const { id } = await service.send({ to: [recipient] });
  await attempt(service.rig, id, accepted({ provider_message_id: `abuse ${n}` }));
  return report(service.rig, kind, { sender: service.address, recipient, provider_message_id: `abuse ${n}` });
}

async function create(options: ServiceOptions = {}): Promise<void> {
  service = await Service.create(options);
}

beforeEach(() => create());

async function consume(event: DeliveryEvent): Promise<void> {
  expect(await consumeEvent(service.world(), event)).toEqual({ kind: 'ack' });
}

/** Reports as many as given, each about mail of its own that was sent before anybody was paused. */
async function prepare(kind: Parameters<typeof report>[1], n: number): Promise<DeliveryEvent[]> {
  const events: DeliveryEvent[] = [];
  for (let i = 0; i < n; i++) events.push(await about(kind));
  return events;
}

async function identity(): Promise<{ status: string; pause_reason: string | null } | undefined> {
  const [row] = await service.rows<{ status: string; pause_reason: string | null }>(
    'SELECT status, pause_reason FROM identities',
  );
  return row;
}

const paused = { status: 'paused', pause_reason: 'abuse_threshold' };
const told = (): Record<string, unknown>[] => service.rig.eventData('identity.paused');

describe('the identity', () => {
  test.each([
    ['complained', 4, { complaints: 4, bounces: 0 }],
    ['bounced', 11, { complaints: 0, bounces: 11 }],
  ] as const)('is paused by the one that is too many: %s, %i', async (kind, n, counted) => {
    const events = await prepare(kind, n + 2);
    for (const event of events.slice(0, n - 1)) await consume(event);
    expect(await identity()).toMatchObject({ status: 'active' });
    for (const event of events.slice(n - 1)) await consume(event);
    expect(await identity()).toEqual(paused);
    const metrics = { ...counted, complaint_window: 1_000, bounce_window: 200 };
    expect(told()).toEqual([{ identity_id: service.identity.id, reason: 'abuse_threshold', metrics }]);
    const entries = await service.audit('identity.auto_pause');
    expect(entries).toMatchObject([{ tenant_id: service.tenant.id, target_id: service.identity.id }]);
    expect(JSON.parse(String(entries[0]?.['details_json']))).toEqual(metrics);
  });

  test('is not paused by soft bounces, failures, deferrals or deliveries', async () => {
    for (const kind of ['soft_bounced', 'failed', 'rejected', 'deferred', 'delivered'] as const) {
      for (const event of await prepare(kind, 12)) await consume(event);
    }
    expect(await identity()).toMatchObject({ status: 'active' });
    // A deferral decides nothing yet.
    expect(service.rig.quotaStorage.sql.first('SELECT COUNT(*) AS n FROM outcomes')).toEqual({ n: 48 });
  });

  test("is judged by its tenant's own thresholds", async () => {
    await create({ tenant: { policy_json: '{"abuse":{"complaint_rate_pause":0.001}}' } });
    const [first, second] = await prepare('complained', 2);
    if (first === undefined || second === undefined) throw new Error('no reports');
    await consume(first);
    expect(await identity()).toMatchObject({ status: 'active' });
    await consume(second);
    expect(await identity()).toEqual(paused);
  });

  test('of the system is never paused, and its recipients are suppressed all the same', async () => {
    await create({ identity: { is_system: 1 } });
    for (const event of await prepare('complained', 6)) await consume(event);
    for (const event of await prepare('bounced', 12)) await consume(event);
    expect(await identity()).toMatchObject({ status: 'active' });
    expect(told()).toEqual([]);
    expect(await service.rows('SELECT 1 FROM suppressions')).toHaveLength(18);
  });

  test('that a person has paused keeps their reason', async () => {
    const events = await prepare('complained', 5);
    await service.set('identities', 'pause_reason', 'manual');
    await service.set('identities', 'status', 'paused');
    for (const event of events) await consume(event);
    expect(await identity()).toEqual({ status: 'paused', pause_reason: 'manual' });
    expect(told()).toEqual([]);
    expect(await service.audit('identity.auto_pause')).toEqual([]);
  });
});

describe('the pause happens once', () => {
  test.each([
    ['dies before the count', () => service.dieAt('event.suppressed')],
    ['dies after the count', () => service.dieAt('event.outcome_recorded')],
    ['dies after the pause', () => service.dieAt('event.paused')],
    ['hears no answer from the quota', () => service.abuse.loseNext()],
    ['cannot reach the quota', () => service.abuse.failNext()],
    ['cannot write the pause', () => service.queries.failNext(1, 3)],
    ['cannot tell of it', () => service.emits.failNext(1, 1)],
  ])('when the run of the report %s (V7)', async (_what, spoil) => {
    const events = await prepare('complained', 4);
    const tipping = events.pop();
    if (tipping === undefined) throw new Error('no report');
    for (const event of events) await consume(event);
    spoil();
    await expect(consumeEvent(service.world(), tipping)).rejects.toThrow();
    service.rig.clock.now += SECOND;
    for (let i = 0; i < 3; i++) await consume(tipping);
    expect(await identity()).toEqual(paused);
    expect(told()).toHaveLength(1);
    expect(await service.audit('identity.auto_pause')).toHaveLength(1);
    const { sql } = service.rig.quotaStorage;
    expect(sql.first('SELECT COUNT(*) AS n FROM outcomes')).toEqual({ n: 4 });
  });

  test('although many reports cross the line at the same time', async () => {
    const events = await prepare('bounced', 30);
    await Promise.all(events.map(consume));
    expect(await identity()).toEqual(paused);
    expect(told()).toHaveLength(1);
    expect(await service.audit('identity.auto_pause')).toHaveLength(1);
  });

  test('although it is recorded only after the report has been forgotten by its mailbox', async () => {
    const [first, ...events] = await prepare('complained', 5);
    if (first === undefined) throw new Error('no report');
    for (const event of events.slice(0, 3)) await consume(event);
    service.rig.sql.run("UPDATE deliveries SET provider_event_ids_json = '[]'");
    for (const event of events.slice(0, 3)) await consume(event);
    expect(await identity()).toMatchObject({ status: 'active' });
    await consume(first);
    expect(await identity()).toEqual(paused);
  });
});

/** As a tenant's key does it: with its entry in the log. */
async function resume(): Promise<void> {
  service.rig.clock.now += DAY;
  await service.set('identities', 'status', 'active');
  const { id, tenant_id } = service.identity;
  await service.db.batch([
    auditStatement({ ...auditEntry('identity.resume', tenant_id), target_id: id, at: service.rig.clock.now }),
  ]);
  service.rig.clock.now += SECOND;
}

describe('after a resume', () => {
  test('no repeat of what was counted before pauses again, neither the one that did it nor any other', async () => {
    const events = await prepare('complained', 7);
    for (const event of events) await consume(event);
    expect(await identity()).toEqual(paused);
    await resume();
    for (const event of [...events, ...events]) await consume(event);
    expect(await identity()).toMatchObject({ status: 'active' });
    expect(told()).toHaveLength(1);
    expect(await service.audit('identity.auto_pause')).toHaveLength(1);
  });

  test('deliveries and bounces do not pause for the complaints of before', async () => {
    const others = [
      ...(await prepare('delivered', 5)),
      ...(await prepare('bounced', 5)),
      ...(await prepare('failed', 5)),
    ];
    for (const event of await prepare('complained', 4)) await consume(event);
    expect(await identity()).toEqual(paused);
    await resume();
    for (const event of others) await consume(event);
    expect(await identity()).toMatchObject({ status: 'active' });
  });

  test('one more complaint does, for the window is what it is', async () => {
    const late = (await prepare('complained', 1))[0];
    if (late === undefined) throw new Error('no report');
    for (const event of await prepare('complained', 4)) await consume(event);
    await resume();
    for (let i = 0; i < 3; i++) await consume(late);
    expect(await identity()).toEqual(paused);
    expect(told().map(({ metrics }) => metrics)).toMatchObject([{ complaints: 4 }, { complaints: 5 }]);
  });

  test('a report that was counted before it and whose run died does not pause any more', async () => {
    const events = await prepare('complained', 4);
    const tipping = events.pop();
    if (tipping === undefined) throw new Error('no report');
    for (const event of events) await consume(event);
    service.dieAt('event.outcome_recorded');
    await expect(consumeEvent(service.world(), tipping)).rejects.toThrow();
    await resume();
    await consume(tipping);
    expect(await identity()).toMatchObject({ status: 'active' });
  });
});

test('a report of long ago, which may have been counted and forgotten, is counted no more', async () => {
  const events = await prepare('complained', 2);
  service.rig.clock.now += 7 * DAY;
  for (const event of events) await consume(event);
  expect(service.rig.quotaStorage.sql.first('SELECT COUNT(*) AS n FROM outcomes')).toEqual({ n: 0 });
  // The person who complained is not written to again, however long the report took.
  expect(await service.rows('SELECT 1 FROM suppressions')).toHaveLength(2);
});
