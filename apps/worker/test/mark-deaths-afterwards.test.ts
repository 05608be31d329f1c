import { createScheduledController } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import worker from '../src/index.ts';
import { Walk, type Way } from './deaths.ts';
import { inMailbox, until } from './mail.ts';
import { MarkLab } from './mark-lab.ts';
import { keepStorage } from './storage.ts';
import { call, eventsOf, sql } from './support.ts';

/** Every mark behind a send: reports, events, webhooks, mail that arrives. Whatever is at work dies there and recovers. */

keepStorage();

const walk = new Walk('what comes afterwards');
let own: MarkLab;

beforeAll(async () => {
  own = await MarkLab.make();
});
beforeEach(() => own.begin());
afterEach(async () => {
  vi.restoreAllMocks();
  await sql('DELETE FROM webhook_endpoints');
});

/** Sends something, has it all die once at the mark, and waits for the end: one message, handed over once, counted right. */
async function ends({ mark, when }: Way, to: string[], status: string, others: string[] = []) {
  const from = await own.somebody();
  own.deaths.plan(mark, when);
  const { id } = await own.sends(from, { to });
  await own.rest(from, ...others);
  if (!mark.startsWith('webhook.')) own.expectDied(mark);
  expect(await own.status(from, id)).toBe(status);
  expect(own.taken().map(({ message_id: taken }) => taken)).toEqual([id]);
  await own.expectBooks(from);
  return { from, id };
}

/** The types of an identity's events that are told of once whatever happened; each has a number of its own. */
async function expectToldOnce(from: string, ...types: string[]): Promise<void> {
  const told = (await eventsOf(from)).map(({ type }) => type);
  for (const type of types) expect(told.filter((other) => other === type)).toEqual([type]);
  const indexed = await sql('SELECT sequence FROM event_index WHERE identity_id = ? ORDER BY sequence', from);
  expect(indexed.map(({ sequence }) => sequence)).toEqual(told.map((_type, index) => index + 1));
}

describe('a report', () => {
  let bounced = 0;
  async function expectBounce(way: Way): Promise<void> {
    const { from, id } = await ends(way, [`bounce+${++bounced}@simulator.invalid`], 'bounced');
    expect(await own.outcomes(from)).toEqual(['bounced']);
    expect(await sql('SELECT reason FROM suppressions WHERE source_message_id = ?', id)).toEqual([
      { reason: 'hard_bounce' },
    ]);
    await expectToldOnce(from, 'message.bounced', 'suppression.created');
  }

  test.each(walk.at('event.start', 'event.applied', 'event.suppressed', 'event.outcome_recorded'))(
    'whose consumer dies at $mark has all its effects, once (V1, V7)',
    expectBounce,
  );

  test.each(walk.at('event.in_transaction'))(
    'whose mailbox dies at $mark, $when, has all its effects, once (V1, V7, P1)',
    expectBounce,
  );

  test.each(walk.at('followup.before_send', 'followup.after_send'))(
    'of the test provider, whose mailbox dies at $mark, $when, comes all the same (V1, P1)',
    expectBounce,
  );

  test.each(walk.at('event.paused'))(
    'that is one complaint too many, whose consumer dies at $mark, pauses the sender once (V5, V7)',
    async (way) => {
      const to = ['a', 'b', 'c', 'd', 'e'].map((name) => `complaint+${name}@simulator.invalid`);
      const { from, id } = await ends(way, to, 'complained');
      expect((await own.outcomes(from)).map(String).toSorted()).toEqual(
        ['complained', 'delivered'].flatMap((outcome) => to.map(() => outcome)),
      );
      expect((await call(own.lab.key, 'identities.get', { params: { identity_id: from } })).status).toBe('paused');
      expect(
        await sql("SELECT id FROM audit_log WHERE target_id = ? AND action = 'identity.auto_pause'", from),
      ).toHaveLength(1);
      expect(await sql('SELECT address_hash FROM suppressions WHERE source_message_id = ?', id)).toHaveLength(5);
      await expectToldOnce(from, 'identity.paused');
    },
  );
});

test.each(walk.at('outbox.before_dispatch', 'outbox.after_dispatch'))(
  'a mailbox that dies at $mark, $when, tells its events again under their numbers (V7, P1)',
  async (way) => {
    const { from } = await ends(way, ['delivered@simulator.invalid'], 'delivered');
    await expectToldOnce(from, 'message.delivered');
  },
);

describe('mail that arrives', () => {
  async function expectArrival(way: Way): Promise<void> {
    const { bob } = own.lab;
    const arrived = () => inMailbox(bob, "SELECT id FROM messages WHERE direction = 'inbound'");
    const before = await arrived();
    await ends(way, ['bob.lab@agents.example'], 'delivered', [bob]);
    expect(await arrived()).toHaveLength(before.length + 1);
    const told = (await eventsOf(bob)).filter(({ type }) => type === 'message.received');
    expect(told).toHaveLength(before.length + 1);
    expect(await own.usageOf('inbound')).toBe(before.length + 1);
  }

  test.each(walk.at('inbound.start', 'inbound.in_transaction'))(
    'whose mailbox dies at $mark, $when, is there once, and its sender hears so (V11, P1)',
    expectArrival,
  );

  test.each(walk.at('inbound.stored'))(
    'whose consumer dies at $mark is there once, and its sender hears so (V11)',
    expectArrival,
  );
});

describe('a webhook', () => {
  /** How often the endpoint is called: what was answered and not recorded is told again, under the same id. */
  async function expectTold(way: Way, calls: number): Promise<void> {
    const url = `https://hooks.acme.com/${way.mark}`;
    const params = { tenant_id: own.lab.tenant };
    const { id: hook } = await call(own.root, 'webhooks.createOfTenant', {
      params,
      body: { url, events: ['message.delivered'] },
    });
    await ends(way, ['delivered@simulator.invalid'], 'delivered');
    await until(() => own.expectDied(way.mark));
    const attempts = () => sql('SELECT attempt, status FROM webhook_deliveries WHERE endpoint_id = ?', hook);
    if (way.mark === 'webhook.begun' || way.mark === 'webhook.answered') {
      // The time of the attempt that died is over, and the sweep finds it.
      expect(await attempts()).toEqual([]);
      own.later(10 * 60_000);
      const cron = createScheduledController({ cron: '* * * * *', scheduledTime: new Date() });
      await worker.scheduled(cron, env);
      await own.deliver();
    }
    await until(async () => expect(await attempts()).toEqual([{ attempt: 1, status: 'succeeded' }]));
    expect(await sql('SELECT event_id FROM webhook_work WHERE endpoint_id = ?', hook)).toEqual([]);
    const told = own.net.posted.filter((posted) => posted.url === url);
    expect(told).toHaveLength(calls);
    expect(new Set(told.map(({ headers }) => headers.get('webhook-id'))).size).toBe(1);
  }

  test.each(walk.at('webhook.fanned_out'))(
    'whose consumer dies at $mark has its work written down, which is done once (V7, V10)',
    (way) => expectTold(way, 1),
  );

  test.each(walk.at('webhook.begun', 'webhook.recorded'))('whose attempt dies at $mark is told once (V10)', (way) =>
    expectTold(way, 1),
  );

  test.each(walk.at('webhook.answered'))(
    'whose attempt dies at $mark is told again under its id, and recorded once (V10)',
    (way) => expectTold(way, 2),
  );
});

test('every mark of what comes after a send has been died at', () => {
  expect(walk.left()).toEqual([]);
});
