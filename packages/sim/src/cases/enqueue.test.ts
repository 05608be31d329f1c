import { describe, expect, test } from 'vitest';
import { HOUR, MINUTE, play, type Scene, SECOND } from './scenario.fixture.ts';

/** E1 to E7: an accepted message and its pointer. Whatever becomes of the pointer, the message leaves once. */

const POINTER = /^send to pm-outbound/;

/** The one message was sent once, so many ms after it was accepted. */
function expectSentOnce(scene: Scene, from: number, to: number): void {
  const { log } = scene.stage.deployment.provider;
  expect(log).toHaveLength(1);
  const [intent] = scene.intents;
  const accepted = Date.parse(intent?.answers[0]?.received_at ?? '');
  expect(intent && scene.row(intent).status).toBe('delivered');
  expect((log[0]?.at ?? 0) - accepted).toBeGreaterThanOrEqual(from);
  expect((log[0]?.at ?? 0) - accepted).toBeLessThan(to);
}

describe('the pointer of an accepted message', () => {
  test('E1 was never queued, because the process died after the commit: the dispatch alarm queues it', async () => {
    const scene = await play({ faults: [{ crash: 'submit.committed' }], meets: ['E1'] }, async (own) => {
      const intent = own.intend('key');
      await own.request(intent);
      await own.wait(4 * MINUTE);
      expect(own.calls(intent)).toEqual([]);
      await own.pursue(intent);
    });
    expectSentOnce(scene, 5 * MINUTE, 6 * MINUTE);
  });

  test('E2 could not be queued: the send is accepted all the same, and the dispatch alarm queues it', async () => {
    const scene = await play({ faults: [{ call: POINTER, harm: 'lost' }], meets: ['E2'] }, async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toMatchObject({ ok: true });
    });
    expectSentOnce(scene, 5 * MINUTE, 6 * MINUTE);
  });

  test('E2 could not be queued for a quarter of an hour: the alarm goes on until it can', async () => {
    const scene = await play({ faults: [{ call: POINTER, harm: 'lost', times: 20 }], meets: ['E2'] }, async (own) => {
      await own.send('key');
      await own.wait(18 * MINUTE);
    });
    expectSentOnce(scene, 10 * MINUTE, HOUR);
  });

  test('E3 was queued, and the call seemed to fail: it leaves at once, and never again', async () => {
    const scene = await play({ faults: [{ call: POINTER, harm: 'answer_lost' }], meets: ['E3'] }, async (own) => {
      await own.send('key');
      await own.wait(15 * MINUTE);
    });
    expectSentOnce(scene, 0, 10 * SECOND);
  });

  test('E4 was queued by an alarm that died before it had written so: it is queued again, and leaves once', async () => {
    const faults = [{ call: POINTER, harm: 'lost' }, { crash: 'dispatch.after_send' }] as const;
    const scene = await play({ faults, meets: ['E4', 'E2', 'C2'] }, async (own) => {
      await own.send('key');
      // The queue stands still until both pointers are in it.
      await own.wait(4 * MINUTE);
      own.stage.deployment.outbound.pause();
      await own.wait(3 * MINUTE);
      expect(own.stage.deployment.outbound.length).toBe(2);
      own.stage.deployment.outbound.resume();
      await own.wait(10 * MINUTE);
    });
    expectSentOnce(scene, 7 * MINUTE, 8 * MINUTE);
  });
});

describe('the alarm of a mailbox', () => {
  const lost = { call: POINTER, harm: 'lost' } as const;

  test('E5 fires twice each time: the message leaves once', async () => {
    const scene = await play({ faults: [lost], always: { alarm_twice: 1 }, meets: ['E5 twice'] }, async (own) => {
      await own.send('key');
      await own.wait(15 * MINUTE);
    });
    expectSentOnce(scene, 5 * MINUTE, 6 * MINUTE);
  });

  test('E5 fires late each time: the message leaves late, once', async () => {
    const scene = await play({ faults: [lost], always: { alarm_late: 1 }, meets: ['E5 late'] }, async (own) => {
      await own.send('key');
      await own.wait(15 * MINUTE);
    });
    expectSentOnce(scene, 5 * MINUTE, 8 * MINUTE);
  });

  test('E5 never fires: whoever enters the mailbox next finds it overdue and puts it back', async () => {
    const scene = await play({ faults: [lost], always: { alarm_lost: 1 }, meets: ['E5 late'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(10 * MINUTE);
      expect(own.calls(intent)).toEqual([]);
    });
    // The crons enter every mailbox with work; from the end of the storm on the alarms that they set come.
    expectSentOnce(scene, 20 * MINUTE, 30 * MINUTE);
  });

  test('E5 dies, and its retries are used up: it is not the last', async () => {
    const scene = await play(
      {
        faults: [lost, { crash: 'dispatch.before_send' }],
        always: { alarm_gives_up: 1 },
        meets: ['E5 retries'],
      },
      async (own) => {
        await own.send('key');
        await own.wait(19 * MINUTE);
      },
    );
    expectSentOnce(scene, 6 * MINUTE, 15 * MINUTE);
  });

  test('E6 finds several deadlines due, of which one fails: every one gets its turn', async () => {
    const scene = await play(
      {
        // The first message has no pointer, the second a claim whose holder has died, and events wait for the directory.
        faults: [
          { call: POINTER, harm: 'lost' },
          { crash: 'consume.claimed' },
          { call: /^directory for mailbox/, harm: 'lost', nth: 2, times: 4 },
        ],
        // Late enough for all of them to be due.
        always: { alarm_late: 1 },
        meets: ['E6', 'C5', 'E2'],
        storm: 40 * MINUTE,
      },
      async (own) => {
        const unqueued = await own.send('unqueued');
        const claimed = await own.send('claimed');
        await own.wait(20 * MINUTE);
        expect(own.row(unqueued).status).toBe('delivered');
        expect(own.row(claimed)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost' });
      },
    );
    const [unqueued, claimed] = scene.intents;
    expect(unqueued && scene.events(unqueued)).toEqual(['message.sent', 'message.delivered']);
    expect(claimed && scene.events(claimed)).toEqual(['message.uncertain']);
  });
});

describe('the queue', () => {
  test('E7 is paused past its retention: the pointer is gone, and the alarm brings another', async () => {
    const scene = await play({ meets: ['E7 paused'], storm: HOUR }, async (own) => {
      own.stage.deployment.outbound.pause();
      const intent = await own.send('key');
      await own.wait(4 * MINUTE + 30 * SECOND);
      own.stage.deployment.outbound.resume();
      await own.wait(10 * SECOND);
      expect(own.calls(intent)).toEqual([]);
      await own.wait(20 * MINUTE);
    });
    expectSentOnce(scene, 5 * MINUTE, 6 * MINUTE);
  });

  test('E7 is paused for half an hour: all pointers but the last are gone, and the message leaves once', async () => {
    const scene = await play({ meets: ['E7 paused'], storm: HOUR }, async (own) => {
      own.stage.deployment.outbound.pause();
      await own.send('key');
      await own.wait(31 * MINUTE);
      own.stage.deployment.outbound.resume();
      await own.wait(20 * MINUTE);
    });
    expectSentOnce(scene, 31 * MINUTE, 32 * MINUTE);
  });

  test('E7 gives a pointer up after its retries: the alarm brings another', async () => {
    const scene = await play(
      {
        faults: [{ call: /^directory for pm-outbound/, harm: 'lost', times: 2 }],
        always: { queue_retries_max: 1 },
        meets: ['E7 dead letter'],
      },
      async (own) => {
        await own.send('key');
        await own.wait(15 * MINUTE);
        expect(own.stage.deployment.outbound.deadLetters).toBe(1);
      },
    );
    expectSentOnce(scene, 5 * MINUTE, 6 * MINUTE);
  });

  test('E7 gives a pointer up whose message was put off: the alarm brings it back after the wait, not before', async () => {
    const scene = await play(
      {
        provider: ['quota', 'accept'],
        faults: [{ call: /^directory for pm-outbound run [2-9]/, harm: 'lost' }],
        always: { queue_retries_max: 0 },
        meets: ['E7 dead letter', 'T8'],
      },
      async (own) => {
        await own.send('key');
        await own.wait(15 * MINUTE);
      },
    );
    const { log } = scene.stage.deployment.provider;
    expect(log).toHaveLength(2);
    // A minute of back-off, then the five that a pointer has to come.
    expect((log[1]?.at ?? 0) - (log[0]?.at ?? 0)).toBeGreaterThan(5 * MINUTE);
  });
});
