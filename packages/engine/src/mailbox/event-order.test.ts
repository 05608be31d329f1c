import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { isAllowedTransition } from '@pmail/core/delivery/transitions.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { JO, KIM, MailboxRig } from './mailbox.fixture.ts';
import { accepted, attempt, report } from './transport.fixture.ts';

/** Reports in every order (V2), more than once (V1), in any number (V9). */

const KINDS = ['delivered', 'deferred', 'bounced', 'soft_bounced', 'complained', 'rejected', 'failed'] as const;
type Kind = (typeof KINDS)[number];

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

let ids = 0;

async function sent(to = [JO]): Promise<{ id: MessageId; provider_message_id: string }> {
  const { id } = await rig.send({ body: { to } });
  const providerId = `order ${++ids}`;
  await attempt(rig, id, accepted({ provider_message_id: providerId }));
  return { id, provider_message_id: providerId };
}

function permutations<T>(items: T[]): T[][] {
  if (items.length <= 1) return [items];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

describe('every order of', () => {
  test.each<[Kind[], string]>([
    [['deferred', 'delivered'], 'delivered'],
    [['deferred', 'bounced'], 'bounced'],
    [['deferred', 'complained'], 'complained'],
    [['delivered', 'complained'], 'complained'],
    [['deferred', 'delivered', 'complained'], 'complained'],
    [['deferred', 'delivered', 'bounced'], 'bounced'],
    [['delivered', 'bounced', 'complained'], 'complained'],
    [['deferred', 'delivered', 'bounced', 'complained'], 'complained'],
    [['deferred', 'soft_bounced', 'complained'], 'complained'],
  ])('%j ends as %s (V2)', async (kinds, end) => {
    for (const order of permutations(kinds)) {
      const { id, provider_message_id } = await sent();
      for (const kind of order) await rig.engine.applyEvent(report(rig, kind, { provider_message_id }));
      expect(rig.statuses(id), order.join(' ')).toEqual({ [JO]: end });
      expect(rig.message(id).status, order.join(' ')).toBe(end);
    }
  });

  test.each<Kind[]>([
    ['failed', 'delivered'],
    ['rejected', 'delivered'],
    ['failed', 'rejected'],
  ])('%s and %s ends as the first, which nothing that was said later undoes (V2)', async (a, b) => {
    for (const order of permutations([a, b])) {
      const { id, provider_message_id } = await sent();
      for (const kind of order) await rig.engine.applyEvent(report(rig, kind, { provider_message_id }));
      expect(rig.message(id).status).toBe(order[0]);
    }
  });
});

test('no sequence of reports takes a step outside the table, tells a change twice or changes by a repeat (V1, V2)', async () => {
  const step = fc.record({ kind: fc.constantFrom(...KINDS), to: fc.constantFrom(JO, KIM) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { id, provider_message_id } = await sent([JO, KIM]);
      const told = rig.events.length;
      const seen: DeliveryEvent[] = [];
      let changes = 0;
      let status = rig.message(id).status;
      let before = rig.statuses(id);
      for (const { kind, to } of steps) {
        const event = report(rig, kind, { provider_message_id, recipient: to });
        await rig.engine.applyEvent(event);
        seen.push(event);
        const after = rig.statuses(id);
        for (const address of [JO, KIM]) {
          const [from, next] = [before[address], after[address]];
          if (from === undefined || next === undefined || from === next) continue;
          expect(isAllowedTransition(from, next)).toBe(true);
          expect(address).toBe(to);
          if (next !== 'failed' && next !== 'rejected') changes++;
        }
        const now = rig.message(id).status;
        if (now !== status && (now === 'failed' || now === 'rejected')) changes++;
        [before, status] = [after, now];
      }
      expect(rig.events.length - told).toBe(changes);
      // Everything once more, as if no id had been kept: nothing goes back, nothing is told again.
      rig.sql.run("UPDATE deliveries SET provider_event_ids_json = '[]'");
      for (const event of seen) await rig.engine.applyEvent(event);
      expect(rig.statuses(id)).toEqual(before);
      expect(rig.message(id).status).toBe(status);
      expect(rig.events.length - told).toBe(changes);
    }),
    { numRuns: 150 },
  );
});

test('ten thousand reports at one mailbox all count once, and the sequence has no gap (V9, I9)', async () => {
  const people = Array.from({ length: 10 }, (_, n) => `reader${n}@example.net`);
  const messages = [];
  for (let n = 0; n < 250; n++) messages.push(await sent(people));
  const events = messages.flatMap(({ provider_message_id }) =>
    people.flatMap((recipient) =>
      (['deferred', 'delivered'] as const).map((kind) => report(rig, kind, { provider_message_id, recipient })),
    ),
  );
  // Each comes twice, the second time in another order.
  const all = [...events, ...events.toReversed()];
  expect(all).toHaveLength(10_000);
  await Promise.all(all.map((event) => rig.engine.applyEvent(event)));
  expect(rig.sql.all('SELECT status, COUNT(*) AS n FROM deliveries GROUP BY status')).toEqual([
    { status: 'delivered', n: 2_500 },
  ]);
  expect(rig.sql.all('SELECT DISTINCT status FROM messages')).toEqual([{ status: 'delivered' }]);
  const told = rig.events;
  expect(told.map(({ sequence }) => sequence)).toEqual(told.map((_, index) => index + 1));
  expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
  const outcomes = told.flatMap(({ type, data }) =>
    type === 'message.delivered' ? [`${String(data['message_id'])} ${String(data['recipient'])}`] : [],
  );
  expect([outcomes.length, new Set(outcomes).size]).toEqual([2_500, 2_500]);
  const types = Object.groupBy(rig.eventTypes, (type) => type);
  expect(Object.entries(types).map(([type, list]) => [type, list?.length])).toEqual([
    ['message.sent', 250],
    ['message.deferred', 2_500],
    ['message.delivered', 2_500],
  ]);
  // A busy machine takes longer than the few seconds that this is.
}, 60_000);
