import { describe, expect, test } from 'vitest';
import { HOUR, MINUTE, play, SECOND } from './scenario.fixture.ts';

/** C1 to C8 and O1 to O5: claims and records that cross, are lost, or come from the dead. */

const ONE = { used: 1, held: 0, counted: 1 };

describe('a claim', () => {
  test('C1 is asked for by several consumers at once: one gets it', async () => {
    // The runs take their time to begin, so that three of them are there before the first has claimed.
    const slow = { call: /^begin /, harm: 'late', ms: 5 * SECOND, times: 3 } as const;
    const scene = await play({ faults: [slow], always: { copies: 2 }, meets: ['C1'] }, async (own) => {
      await own.send('key');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
  });

  test('C3 C2 is asked for by an older job after a newer: there is nothing left to claim', async () => {
    const scene = await play({ provider: ['rate_limit', 'accept'], meets: ['C3', 'C2'] }, async (own) => {
      const { outbound } = own.stage.deployment;
      const intent = await own.send('key');
      await own.wait(4 * SECOND);
      // What the first attempt queued for later is in the queue; an older pointer of the same message lingers.
      const { tenant_id, identity_id } = intent.identity;
      const job = {
        v: 1,
        kind: 'send',
        tenant_id,
        identity_id,
        message_id: own.row(intent).id,
        request_id: 'x',
      } as const;
      outbound.put(job, 60 * SECOND);
      outbound.put(job, 1 * SECOND);
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(2);
    expect(scene.books).toEqual(ONE);
  });

  test('C4 whose answer is lost is asked for again by the same run, which makes the one call', async () => {
    const scene = await play({ faults: [{ call: /^begin /, harm: 'answer_lost' }], meets: ['C4'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(10 * SECOND);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('C4 whose answer is lost twice: nobody calls, and the message is uncertain when the claim is stale', async () => {
    const lost = { call: /^begin /, harm: 'answer_lost', times: 2 } as const;
    const scene = await play({ faults: [lost], meets: ['C4'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(4 * MINUTE);
      expect(own.row(intent).status).toBe('queued');
      await own.wait(2 * MINUTE);
      expect(own.row(intent)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost' });
    });
    expect(scene.stage.deployment.provider.log).toEqual([]);
  });

  test.each(['consume.claimed', 'consume.message_read'] as const)(
    'C5 whose holder dies at %s: uncertain after five minutes, without a second call',
    async (crash) => {
      const scene = await play({ faults: [{ crash }], meets: ['C5'], storm: HOUR }, async (own) => {
        const intent = await own.send('key');
        await own.wait(4 * MINUTE);
        expect(own.row(intent).status).toBe('queued');
        await own.wait(40 * MINUTE);
        expect(own.row(intent).status).toBe('uncertain');
      });
      expect(scene.stage.deployment.provider.log).toEqual([]);
    },
  );

  test('C6 that is stale while its holder is only slow: the late result settles it, and no second call was made', async () => {
    const scene = await play(
      { always: { slow_transport: 1 }, meets: ['C6'], reports: [], storm: HOUR },
      async (own) => {
        // Four in a row, as chance decides how slow: one at least is slower than its claim lasts.
        for (const key of ['a', 'b', 'c', 'd']) await own.send(key, { to: [`${key}@example.net`] });
        await own.wait(50 * MINUTE);
      },
    );
    expect(scene.intents.map((intent) => [scene.row(intent).status, scene.calls(intent).length])).toEqual(
      scene.intents.map(() => ['submitted', 1]),
    );
    expect(scene.books).toEqual({ used: 4, held: 0, counted: 4 });
  });

  test.each([
    ['dies', { crash: 'claim.in_transaction' }],
    ['throws', { statement: /^INSERT INTO attempts/ }],
  ] as const)('C7 whose commit %s is none: the same run claims again, and calls once', async (_how, fault) => {
    const scene = await play({ faults: [fault], meets: ['C7'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(10 * SECOND);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('C8 of the third of ten messages dies with its batch: the rest comes again, and each is sent once', async () => {
    const scene = await play(
      { faults: [{ crash: 'consume.transport_done', nth: 3 }], meets: ['C8', 'O1'], storm: HOUR, reportsOnce: true },
      async (own) => {
        own.stage.deployment.outbound.pause();
        for (let n = 0; n < 10; n++) await own.send(`key-${n}`, { to: [`r${n}@example.net`] });
        await own.wait(2 * SECOND);
        own.stage.deployment.outbound.resume();
        await own.wait(20 * MINUTE);
      },
    );
    expect(scene.intents.map((intent) => scene.calls(intent).length)).toEqual(Array.from({ length: 10 }, () => 1));
    expect(scene.intents.every((intent) => scene.row(intent).status === 'delivered')).toBe(true);
    expect(scene.books).toEqual({ used: 10, held: 0, counted: 10 });
  });
});

describe('the record of an outcome', () => {
  test('O1 is not made, because the consumer dies before it: uncertain, until the report of the provider', async () => {
    const scene = await play(
      { faults: [{ crash: 'consume.transport_done' }], meets: ['O1'], reportsOnce: true },
      async (own) => {
        await own.send('key');
      },
    );
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('delivered');
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual(ONE);
  });

  test('O2 is made twice, because its answer was lost: it counts once', async () => {
    const lost = { call: /^outcome /, harm: 'answer_lost' } as const;
    const scene = await play({ faults: [lost], meets: ['O2'] }, async (own) => {
      await own.send('key');
    });
    const [intent] = scene.intents;
    expect(intent && scene.events(intent)).toEqual(['message.sent', 'message.delivered']);
    expect(scene.books).toEqual(ONE);
  });

  test('O2 of a wait, whose answer was lost: the message is queued again all the same', async () => {
    const lost = { call: /^outcome /, harm: 'answer_lost' } as const;
    const scene = await play({ faults: [lost], provider: ['quota', 'accept'], meets: ['O2', 'T8'] }, async (own) => {
      await own.send('key');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(2);
    expect(scene.books).toEqual(ONE);
  });

  test('O3 finds no mailbox, twice: uncertain, and the job that comes again calls nobody', async () => {
    const lost = { call: /^outcome /, harm: 'lost', times: 2 } as const;
    const scene = await play({ faults: [lost], reports: [], meets: ['O3', 'C1'], storm: HOUR }, async (own) => {
      await own.send('key');
      await own.wait(50 * MINUTE);
    });
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('uncertain');
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('O4 is made, and the consumer dies before it acknowledges: the job comes again to nothing', async () => {
    const scene = await play({ faults: [{ crash: 'consume.recorded' }], meets: ['O4', 'C2'] }, async (own) => {
      await own.send('key');
    });
    const [intent] = scene.intents;
    expect(intent && scene.events(intent)).toEqual(['message.sent', 'message.delivered']);
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });
});

describe('O5 a person settles a message while its report arrives', () => {
  test.each([
    ['sent', 'delivered'],
    ['not_sent', 'failed'],
  ] as const)('O5 the person says %s first', async (word, status) => {
    const scene = await play({ provider: ['accept_and_lose_answer'], meets: ['T3'] }, async (own) => {
      own.stage.deployment.delivery.pause();
      const intent = await own.send('key');
      await own.wait(40 * SECOND);
      const { id } = own.row(intent);
      expect(await own.remote().resolve(id, word)).toMatchObject({ ok: true });
      own.stage.deployment.delivery.resume();
      await own.wait(MINUTE);
      // Not sent is final: without an uncertain message the report is about nothing that is known.
      expect(own.row(intent).status).toBe(word === 'sent' ? 'submitted' : status);
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual({ used: word === 'sent' ? 1 : 0, held: 0, counted: 1 });
  });

  test('O5 the report is first: the person hears that there is nothing to settle', async () => {
    const scene = await play({ provider: ['accept_late'], meets: ['T5'], storm: HOUR }, async (own) => {
      const intent = await own.send('key');
      await own.wait(2 * MINUTE);
      expect(await own.remote().resolve(own.row(intent).id, 'not_sent')).toMatchObject({
        ok: false,
        code: 'not_uncertain',
      });
    });
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('delivered');
    expect(scene.books).toEqual(ONE);
  });
});
