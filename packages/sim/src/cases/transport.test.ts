import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, play, type Scene, SECOND } from './scenario.fixture.ts';

/** T1 to T10: what a provider can do with a call, and what becomes of the message. */

const NOTHING = { used: 0, held: 0, counted: 1 };
const ONE = { used: 1, held: 0, counted: 1 };

function only(scene: Scene) {
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  return { ...scene.row(intent), calls: scene.calls(intent), events: scene.events(intent), intent };
}

describe('an answer that proves that nothing was sent', () => {
  test.each([
    ['T1', 'rate_limit', 9 * SECOND],
    ['T8', 'quota', 54 * SECOND],
  ] as const)('%s %s: it is tried again after the wait, and sent once', async (id, outcome, wait) => {
    const scene = await play({ provider: [outcome, outcome, 'accept'], meets: [id] }, async (own) => {
      await own.send('key');
      await own.wait(10 * SECOND);
      expect(own.books.held).toBe(1);
    });
    const { calls, status } = only(scene);
    expect(status).toBe('delivered');
    expect(calls.map(({ accepted }) => accepted.length)).toEqual([0, 0, 1]);
    expect((calls[1]?.at ?? 0) - (calls[0]?.at ?? 0)).toBeGreaterThan(wait);
    expect((calls[2]?.at ?? 0) - (calls[1]?.at ?? 0)).toBeGreaterThan(wait * 2);
    expect(scene.books).toEqual(ONE);
  });

  test('T8 a daily limit that stays: it fails when its day is over, and nothing of it is used', async () => {
    const scene = await play({ provider: ['quota'], meets: ['T8'] }, async (own) => {
      await own.send('key');
    });
    const { calls, status, status_reason, events } = only(scene);
    expect({ status, status_reason, events }).toEqual({
      status: 'failed',
      status_reason: 'quota_exhausted',
      events: ['message.failed'],
    });
    expect((calls.at(-1)?.at ?? 0) - (calls[0]?.at ?? 0)).toBeLessThan(DAY);
    expect((calls.at(-1)?.at ?? 0) - (calls[0]?.at ?? 0)).toBeGreaterThan(DAY - 2 * HOUR);
    expect(scene.books).toEqual(NOTHING);
  });
});

describe('an answer that proves nothing', () => {
  test.each([
    ['T2', 'lose_before_accepting', 'transport_timeout'],
    ['T6', 'server_error', 'transport_connection_lost'],
  ] as const)('%s %s: uncertain, and never called again', async (id, outcome, reason) => {
    const scene = await play({ provider: [outcome], meets: [id], storm: 2 * HOUR }, async (own) => {
      const intent = await own.send('key');
      await own.wait(HOUR);
      await own.pursue(intent);
    });
    expect(only(scene)).toMatchObject({
      status: 'uncertain',
      status_reason: reason,
      events: ['message.uncertain'],
      calls: [{}],
    });
    expect(scene.books).toEqual(NOTHING);
  });

  test('T6 and a person says that it was not sent: failed, and its key goes on answering with it', async () => {
    const scene = await play({ provider: ['server_error'], meets: ['T6'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(10 * SECOND);
      const { id } = own.row(intent);
      expect(await own.remote().resolve(id, 'not_sent')).toMatchObject({ ok: true, message: { status: 'failed' } });
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true, message: { id } });
    });
    expect(only(scene)).toMatchObject({ status: 'failed', status_reason: 'resolved_not_sent', calls: [{}] });
  });

  test.each([
    ['T3', 'accept_and_lose_answer'],
    ['T5', 'accept_late'],
  ] as const)(
    '%s %s: uncertain, until the report of the provider tells, and never called again',
    async (id, outcome) => {
      const scene = await play({ provider: [outcome], meets: [id], reportsOnce: true }, async (own) => {
        const intent = await own.send('key');
        await own.wait(33 * SECOND);
        expect(own.row(intent).status).toMatch(/uncertain|delivered/);
      });
      const { status, flags_json, calls, events } = only(scene);
      expect({ status, flags: JSON.parse(flags_json) as unknown }).toEqual({
        status: 'delivered',
        flags: ['reconciled'],
      });
      expect(calls).toHaveLength(1);
      expect(events).toEqual(expect.arrayContaining(['message.reconciled', 'message.delivered']));
      expect(scene.books).toEqual(ONE);
    },
  );

  test('T9 none, because the consumer is killed in the middle of the call: uncertain, until a report tells', async () => {
    const scene = await play({ always: { die_in_call: 1 }, meets: ['T9'], reportsOnce: true }, async (own) => {
      await own.send('key');
      await own.wait(10 * MINUTE);
    });
    const { status, calls } = only(scene);
    expect(status).toBe('delivered');
    expect(calls).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
  });

  test('T9 and no report ever comes: uncertain it stays, for a person to settle', async () => {
    const scene = await play({ always: { die_in_call: 1 }, reports: [], meets: ['T9'] }, async (own) => {
      await own.send('key');
      await own.wait(10 * MINUTE);
    });
    expect(only(scene)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost', calls: [{}] });
    expect(scene.books).toEqual(NOTHING);
  });

  test('T5 a call that outlasts its claim: its late acceptance settles the message (C6)', async () => {
    const scene = await play({ always: { slow_transport: 1 }, meets: [], reportsOnce: true }, async (own) => {
      const intent = await own.send('key');
      await own.wait(5 * MINUTE + 2 * SECOND);
      own.stage.universe.faults = { ...own.stage.universe.faults, slow_transport: 0 };
      await own.wait(5 * MINUTE);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(only(scene).calls).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
  });
});

describe('an answer that differs', () => {
  test('T4 for each recipient of a relay: each has its own end, and only who was put off is tried again', async () => {
    const to = ['a@example.net', 'b@example.net', 'c@example.net', 'd@example.net', 'e@example.net', 'f@example.net'];
    const scene = await play({ provider: ['partial', 'accept'], meets: ['T4'] }, async (own) => {
      await own.send('key', { to }, 1);
    });
    const { calls, intent } = only(scene);
    expect(calls.map(({ recipients }) => recipients)).toEqual([to, ['c@example.net', 'f@example.net']]);
    expect(scene.deliveries(intent)).toEqual({
      'a@example.net': 'delivered',
      'b@example.net': 'rejected',
      'c@example.net': 'delivered',
      'd@example.net': 'delivered',
      'e@example.net': 'rejected',
      'f@example.net': 'delivered',
    });
    expect(scene.books).toEqual({ used: 4, held: 0, counted: 1 });
  });

  test('T7 by having no id: submitted, counted, and its reports find nothing', async () => {
    const scene = await play({ provider: ['accept_without_id'], meets: ['T7', 'V4'] }, async (own) => {
      await own.send('key');
    });
    expect(only(scene)).toMatchObject({ status: 'submitted', events: ['message.sent'], calls: [{}] });
    expect(scene.books).toEqual(ONE);
  });

  test('T7 by an id that was seen before: reports go to the message that was sent to their recipient', async () => {
    const scene = await play({ provider: ['accept_known_id'], meets: ['T7'] }, async (own) => {
      await own.send('first', { to: ['a@example.net'] });
      await own.wait(3 * SECOND);
      await own.send('second', { to: ['b@example.net'] });
    });
    expect(scene.intents.map((intent) => [scene.row(intent).status, scene.events(intent)])).toEqual([
      ['delivered', ['message.sent', 'message.delivered']],
      ['delivered', ['message.sent', 'message.delivered']],
    ]);
  });
});

describe('a relay that gets out of step', () => {
  test('T11 before the final dot: nothing was sent, so it is tried again after the wait, and sent once', async () => {
    const scene = await play({ provider: ['out_of_step', 'out_of_step', 'accept'], meets: ['T11'] }, async (own) => {
      await own.send('key', {}, 1);
      await own.wait(10 * SECOND);
      expect(own.books.held).toBe(1);
    });
    const { calls, status } = only(scene);
    expect(status).toBe('delivered');
    expect(calls.map(({ provider, accepted }) => [provider, accepted.length])).toEqual([
      ['smtp', 0],
      ['smtp', 0],
      ['smtp', 1],
    ]);
    expect((calls[1]?.at ?? 0) - (calls[0]?.at ?? 0)).toBeGreaterThan(54 * SECOND);
    expect(scene.books).toEqual(ONE);
  });

  test('T11 from the final dot on: uncertain, and never called again', async () => {
    const scene = await play(
      { provider: ['out_of_step_late'], reports: [], meets: ['T11'], storm: 2 * HOUR },
      async (own) => {
        const intent = await own.send('key', {}, 1);
        await own.wait(HOUR);
        await own.pursue(intent);
      },
    );
    expect(only(scene)).toMatchObject({
      status: 'uncertain',
      status_reason: 'transport_connection_lost',
      events: ['message.uncertain'],
      calls: [{}],
    });
    expect(scene.books).toEqual(NOTHING);
  });
});

describe('the stored message', () => {
  test('T10 is missing or different when it is read: nothing is handed over until it is itself again', async () => {
    const scene = await play({ always: { store_corrupt: 1 }, meets: ['T10'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(10 * MINUTE);
      expect(own.calls(intent)).toEqual([]);
      expect(own.row(intent).status).toBe('queued');
      expect(own.books.held).toBe(1);
    });
    expect(only(scene)).toMatchObject({ status: 'delivered', calls: [{}] });
    expect(scene.books).toEqual(ONE);
  });
});
