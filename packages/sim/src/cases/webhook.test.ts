import type { EndpointId } from '@pmail/engine/webhooks/endpoints.ts';
import type { DeliveryAttempt } from '@pmail/engine/webhooks/record.ts';
import { describe, expect, test } from 'vitest';
import { Process } from '../process.ts';
import type { PostRecord, ReceiverPlan } from '../receivers.ts';
import type { NewEndpoint } from '../subscribers.ts';
import { DAY, HOUR, MINUTE, play, type Scene, SECOND } from './scenario.fixture.ts';

/** V10: subscribers that fail, hang, redirect or are gone, and a queue and runs that lose what they have in hand. */

const SCHEDULE_MS = [0.5, 2, 10, 30, 60, 120, 240, 480, 720, 720, 720, 1_140].map((minutes) => minutes * MINUTE);

/** So that an allowance does not begin anew within it. */
const MID_MONTH = Date.UTC(2026, 9, 10);

function endpoint(own: Scene, plan: ReceiverPlan, more: Partial<NewEndpoint> = {}): Promise<EndpointId> {
  return own.stage.deployment.subscribers.add({ tenant_id: own.identity().tenant_id, plan, ...more });
}

function attempts({ stage }: Scene, id: EndpointId): DeliveryAttempt[] {
  return stage.deployment.directory.all(
    'SELECT * FROM webhook_deliveries WHERE endpoint_id = ? ORDER BY event_id, attempt',
    id,
  );
}

/** How the attempts of the first event went, by error or status. */
function course(scene: Scene, id: EndpointId): (string | number | null)[] {
  const all = attempts(scene, id);
  return all
    .filter(({ event_id }) => event_id === all[0]?.event_id)
    .map(({ error, http_status: status }) => error ?? status);
}

function posts({ stage }: Scene, id: EndpointId): PostRecord[] {
  return stage.deployment.subscribers.receivers.log.filter(({ endpoint_id }) => endpoint_id === id);
}

/** What came to an endpoint, one of each event, in order of sequence. */
function heard(scene: Scene, id: EndpointId): string[] {
  const taken = posts(scene, id).filter(({ answer }) => typeof answer === 'number' && answer < 300);
  const events = taken.map(({ body }) => JSON.parse(body) as { type: string; sequence: number });
  return [
    ...new Map(events.sort((a, b) => a.sequence - b.sequence).map((event) => [event.sequence, event.type])).values(),
  ];
}

const SENT_AND_DELIVERED = ['message.sent', 'message.delivered'];

describe('V10 a receiver', () => {
  test.each([
    ['V10 hangs', 'hang', 'timeout'],
    ['V10 fails', 'fail', 'status_5xx'],
    ['V10 fails', 'refuse', 'status_4xx'],
    ['V10 redirects', 'redirect', 'redirect'],
    ['V10 closes', 'close', 'connect'],
  ] as const)(
    '%s once (%s): the second attempt is half a minute later, and nobody else waits',
    async (id, act, error) => {
      let [bad, good]: EndpointId[] = [];
      const scene = await play({ meets: [id] }, async (own) => {
        bad = await endpoint(own, [act, 'take']);
        good = await endpoint(own, ['take']);
        await own.send('key');
        await own.wait(20 * SECOND);
        expect(heard(own, good ?? fail())).toEqual(SENT_AND_DELIVERED);
        await own.wait(5 * MINUTE);
      });
      expect(course(scene, bad ?? fail())).toEqual([error, 200]);
      expect(heard(scene, bad ?? fail())).toEqual(SENT_AND_DELIVERED);
      const [first, second] = posts(scene, bad ?? fail()).filter(
        ({ event_id }, _index, [one]) => event_id === one?.event_id,
      );
      const wait = (second?.at ?? 0) - (first?.ended_at ?? 0);
      expect(wait).toBeGreaterThan(26 * SECOND);
      expect(wait).toBeLessThan(40 * SECOND);
    },
  );

  test('V10 that answers without end is taken at its status', async () => {
    let id: EndpointId | undefined;
    const scene = await play({ meets: ['V10 talks'] }, async (own) => {
      id = await endpoint(own, ['take_and_talk']);
      await own.send('key');
    });
    expect(course(scene, id ?? fail())).toEqual([200]);
  });

  test('V10 that is back after ten failures gets what it missed, as it was', async () => {
    let id: EndpointId | undefined;
    const scene = await play(
      { meets: ['V10 back', 'V10 fails'], storm: 3 * DAY, quietAfter: 5 * MINUTE },
      async (own) => {
        id = await endpoint(own, [...Array<'fail'>(10).fill('fail'), 'take']);
        await own.send('key');
      },
    );
    expect(course(scene, id ?? fail())).toEqual([...Array<string>(10).fill('status_5xx'), 200]);
    expect(heard(scene, id ?? fail())).toEqual(SENT_AND_DELIVERED);
  });

  test('V10 that never is back: thirteen attempts in three days, and then dead; a replay has the same id', async () => {
    let id: EndpointId | undefined;
    const scene = await play(
      { meets: ['V10 dead', 'V10 replay'], start: MID_MONTH, storm: 8 * DAY, quietAfter: 5 * MINUTE, reports: [] },
      async (own) => {
        id = await endpoint(own, [...Array<'close'>(13).fill('close'), 'take']);
        await own.send('key');
        await own.wait(4 * DAY);
        expect(attempts(own, id).at(-1)).toMatchObject({ attempt: 13, status: 'dead', next_attempt_at: null });
        await own.stage.deployment.subscribers.replay(new Process('operator'), id, 0);
      },
    );
    const rows = attempts(scene, id ?? fail());
    expect(rows.map(({ status }) => status)).toEqual([...Array<string>(12).fill('failed'), 'dead', 'succeeded']);
    expect(rows.at(-1)?.attempt).toBe(14);
    expect(new Set(posts(scene, id ?? fail()).map(({ event_id, body }) => event_id + body)).size).toBe(1);
    rows.slice(0, 12).forEach(({ next_attempt_at: next, created_at: at, duration_ms: took }, index) => {
      const wait = (next ?? 0) - at - (took ?? 0);
      const planned = SCHEDULE_MS[index] ?? 0;
      expect(Math.abs(wait - planned)).toBeLessThanOrEqual(planned / 10);
    });
  });

  test('V10 that is gone is called no more, and the platform is told once', async () => {
    let [gone, platform]: EndpointId[] = [];
    const scene = await play({ meets: ['V10 gone', 'V10 off'] }, async (own) => {
      gone = await endpoint(own, ['gone']);
      platform = await endpoint(own, ['take'], { tenant_id: null, types: ['webhook.disabled'] });
      // Several at once, of which the first answer ends the rest.
      await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((key) => own.send(key)));
    });
    expect(posts(scene, gone ?? fail()).length).toBeLessThan(attempts(scene, gone ?? fail()).length);
    const told = posts(scene, platform ?? fail()).map(({ body }) => (JSON.parse(body) as { data: object }).data);
    expect(told).toEqual([{ webhook_id: gone, reason: 'gone' }]);
  });

  test('V10 whose name leads inside is never called', async () => {
    let id: EndpointId | undefined;
    const scene = await play(
      { meets: ['V10 inside', 'V10 dead'], storm: 4 * DAY, quietAfter: 5 * MINUTE, reports: [] },
      async (own) => {
        id = await endpoint(own, ['take'], { inside: true });
        await own.send('key');
      },
    );
    expect(course(scene, id ?? fail())).toEqual(Array<string>(13).fill('ssrf_blocked'));
    expect(posts(scene, id ?? fail())).toEqual([]);
  });

  test('V10 that hangs for ever holds up nobody but itself', async () => {
    let [slow, quick]: EndpointId[] = [];
    const scene = await play(
      { meets: ['V10 hangs', 'V10 off'], storm: 5 * DAY, quietAfter: 10 * MINUTE, reports: [] },
      async (own) => {
        slow = await endpoint(own, ['hang']);
        quick = await endpoint(own, ['take']);
        await Promise.all(Array.from({ length: 30 }, (_, n) => own.send(`key-${n}`)));
      },
    );
    const late = posts(scene, quick ?? fail()).map(
      ({ at, body }) => at - Date.parse((JSON.parse(body) as { occurred_at: string }).occurred_at),
    );
    expect(late).toHaveLength(30);
    expect(Math.max(...late)).toBeLessThan(10 * SECOND);
    expect(mostAtOnce(posts(scene, slow ?? fail()))).toBe(8);
  });

  test('V10 that is turned off gets nothing of what was due, and what comes when it is on again', async () => {
    let id: EndpointId | undefined;
    const scene = await play({ meets: ['V10 off'] }, async (own) => {
      const { subscribers } = own.stage.deployment;
      id = await endpoint(own, ['fail', 'take']);
      await own.send('first');
      await own.wait(20 * SECOND);
      await subscribers.turn(id, false);
      await own.send('second');
      await own.wait(2 * MINUTE);
      await subscribers.turn(id, true);
      await own.send('third');
    });
    expect(attempts(scene, id ?? fail()).map(({ error }) => error)).toEqual([
      'status_5xx',
      'endpoint_disabled',
      'status_5xx',
      'endpoint_disabled',
      'status_5xx',
      null,
      'status_5xx',
      null,
    ]);
  });
});

describe('V10 a delivery', () => {
  test.each([
    ['webhook.fanned_out', 0],
    ['webhook.begun', 0],
    ['webhook.answered', 1],
    ['webhook.recorded', 0],
    ['outbox.after_dispatch', 0],
  ] as const)('V10 whose run dies at %s is made all the same (%i more)', async (crash, more) => {
    let [one, other]: EndpointId[] = [];
    const scene = await play({ faults: [{ crash }], meets: [] }, async (own) => {
      one = await endpoint(own, ['take']);
      other = await endpoint(own, ['fail', 'take']);
      await own.send('key');
    });
    for (const id of [one ?? fail(), other ?? fail()]) expect(heard(scene, id)).toEqual(SENT_AND_DELIVERED);
    expect(posts(scene, one ?? fail()).length + posts(scene, other ?? fail()).length).toBe(6 + more);
  });

  test('V10 that the queue has lost is found by the sweep', async () => {
    let id: EndpointId | undefined;
    const lost = { call: /^send to pm-webhooks/, harm: 'lost' } as const;
    const scene = await play(
      {
        faults: [
          { ...lost, nth: 2, times: 3 },
          { call: /^begin webhook/, harm: 'lost' },
        ],
        meets: ['V10 swept'],
      },
      async (own) => {
        id = await endpoint(own, ['fail', 'take']);
        await own.send('key');
        await own.wait(5 * MINUTE);
        // The power is lost when the second send is sure, and not in the middle of its call.
        own.stage.universe.atMark('outcome.committed', 2, () => {
          own.stage.universe.scheduler.after(SECOND, () => own.stage.deployment.powerLoss(true));
        });
        await own.send('again');
        await own.wait(MINUTE);
      },
    );
    expect(heard(scene, id ?? fail())).toEqual([...SENT_AND_DELIVERED, ...SENT_AND_DELIVERED]);
  });

  test('V10 whose jobs come three times each is made once', async () => {
    let id: EndpointId | undefined;
    const scene = await play({ always: { copies: 2 }, meets: [] }, async (own) => {
      id = await endpoint(own, ['fail', 'take']);
      await own.send('key');
    });
    expect(posts(scene, id ?? fail())).toHaveLength(4);
  });

  test('V10 whose directory is away for half an hour comes afterwards', async () => {
    let id: EndpointId | undefined;
    const scene = await play({ meets: [], storm: 2 * HOUR }, async (own) => {
      id = await endpoint(own, ['fail', 'take']);
      await own.send('key');
      await own.wait(2 * SECOND);
      own.stage.universe.outage(/^directory/, 30 * MINUTE, []);
    });
    expect(heard(scene, id ?? fail())).toEqual(SENT_AND_DELIVERED);
  });
});

function mostAtOnce(records: PostRecord[]): number {
  return Math.max(...records.map(({ at }) => records.filter((other) => other.at <= at && other.ended_at > at).length));
}

function fail(): never {
  throw new Error('not set up');
}
