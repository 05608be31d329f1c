import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, play, SECOND } from './scenario.fixture.ts';

/** K: clocks that are put on or back while sends are under way. Alarms follow the clocks; the rest of the world does not. */

describe('K1 the clocks are put on by a year', () => {
  test('K1 what is queued, claimed or put off comes to an end, and the service goes on', async () => {
    const scene = await play(
      {
        provider: ['quota'],
        faults: [
          { call: /^send to pm-outbound/, harm: 'lost', nth: 3 },
          { call: /^outcome /, harm: 'late', ms: MINUTE, nth: 2 },
        ],
        meets: ['T8', 'E2', 'C6'],
        storm: 2 * HOUR,
      },
      async (own) => {
        const putOff = await own.send('put off');
        await own.wait(10 * SECOND);
        const queued = await own.send('queued');
        await own.wait(10 * SECOND);
        const claimed = await own.send('claimed');
        await own.wait(3 * SECOND);
        const open =
          'SELECT 1 FROM attempts a JOIN messages m ON m.rowid = a.message_rowid WHERE m.id = ? AND ended_at IS NULL';
        expect([putOff, queued, claimed].map((one) => own.sql(one).all(open, own.row(one).id).length)).toEqual([
          0, 0, 1,
        ]);
        own.stage.universe.turnClocks(365 * DAY);
        own.stage.since = own.now;
        await own.wait(30 * MINUTE);
        // Of the claimed one nobody can say any more that it is still to be sent.
        expect([putOff, queued, claimed].map((one) => own.row(one).status)).toEqual(['failed', 'failed', 'uncertain']);
        expect(own.row(queued).status_reason).toBe('quota_exhausted');
      },
    );
    expect(scene.books.held).toBe(0);
  });

  test('K1 a claim that was just given is stale: uncertain, and the late result settles it', async () => {
    const scene = await play({ meets: ['C6'], reports: [], storm: HOUR }, async (own) => {
      const intent = own.intend('key');
      own.stage.universe.atMark('consume.message_read', 1, () => own.stage.universe.turnClocks(365 * DAY));
      await own.request(intent);
      await own.wait(10 * MINUTE);
      expect(own.row(intent).status).toBe('submitted');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });
});

describe('K1 the clocks are put on by a year and back again', () => {
  test('K1 while a send is being stored: what it stores is not taken for left over', async () => {
    const scene = await play(
      // The quota answers late, so that the clean-up comes between the store and the commit.
      { faults: [{ call: /^reserve/, harm: 'answer_late', ms: 3_000 }], meets: ['K1', 'K2'], storm: HOUR },
      async (own) => {
        const intent = own.intend('key');
        own.stage.universe.atMark('submit.composed', 1, () => {
          own.stage.universe.scheduler.after(1_000, () => own.stage.universe.turnClocks(365 * DAY));
          own.stage.universe.scheduler.after(10_000, () => own.stage.universe.turnClocks(-365 * DAY));
        });
        await own.request(intent);
        own.stage.since = Number.POSITIVE_INFINITY;
        await own.wait(MINUTE);
      },
    );
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('delivered');
  });

  test.each([
    ['a minute', MINUTE],
    ['a day', DAY],
  ])('K1 for %s: a key of before names its message all the time, and everything comes to rest', async (_long, ms) => {
    const scene = await play(
      { faults: [{ call: /^send to pm-outbound/, harm: 'lost', nth: 2 }], meets: ['E2'], storm: 3 * DAY },
      async (own) => {
        const before = await own.send('before');
        await own.wait(MINUTE);
        own.stage.universe.turnClocks(365 * DAY);
        await own.pursue(before);
        const during = await own.send('during');
        await own.wait(ms);
        own.stage.universe.turnClocks(-365 * DAY);
        await own.wait(MINUTE);
        await own.pursue(before);
        await own.pursue(during);
        await own.wait(2 * DAY);
        await own.pursue(before);
        own.stage.since = Number.POSITIVE_INFINITY;
      },
    );
    expect(scene.intents.map((intent) => scene.calls(intent).length)).toEqual([1, 1]);
    expect(scene.intents.map((intent) => scene.row(intent).status)).toEqual(['delivered', 'delivered']);
    // The period and the day of the first were over for the clocks, so the second alone is counted, and once.
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
  });
});

describe('K2 the clocks are put back', () => {
  test.each([
    ['a minute', MINUTE],
    ['an hour', HOUR],
    ['a day', DAY],
  ])('K2 by %s in the middle of sends: each is sent once, and everything comes to rest', async (_long, ms) => {
    const scene = await play(
      { faults: [{ call: /^send to pm-outbound/, harm: 'lost', nth: 2 }], meets: ['E2'], storm: HOUR },
      async (own) => {
        await own.send('before');
        await own.send('queued');
        own.stage.universe.turnClocks(-ms);
        const after = await own.send('after');
        await own.pursue(after);
        await own.wait(20 * MINUTE);
      },
    );
    expect(scene.intents.map((intent) => scene.row(intent).status)).toEqual(['delivered', 'delivered', 'delivered']);
    expect(scene.intents.map((intent) => scene.calls(intent).length)).toEqual([1, 1, 1]);
    expect(scene.books).toMatchObject({ used: 3, held: 0 });
  });

  test('K2 by an hour while a consumer has its claim: nobody gets a second one', async () => {
    const scene = await play({ always: { copies: 2 }, meets: [], storm: 3 * HOUR }, async (own) => {
      own.stage.universe.atMark('consume.claimed', 1, () => own.stage.universe.turnClocks(-HOUR));
      await own.send('key');
      await own.wait(2 * HOUR);
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('delivered');
  });
});
