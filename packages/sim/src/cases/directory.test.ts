import { describe, expect, test } from 'vitest';
import { MINUTE, play, SECOND } from './scenario.fixture.ts';

/** S13: the directory fails, or says what is no longer true. */

describe('S13 the directory fails', () => {
  test.each(['lost', 'answer_lost'] as const)(
    'S13 (%s) for the request: nothing was tried, and the repeat is accepted',
    async (harm) => {
      const scene = await play(
        { faults: [{ call: /^directory for request/, harm }], meets: ['S13 down'] },
        async (own) => {
          const intent = own.intend('key');
          expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
          expect(own.stored('/out/')).toEqual([]);
          expect(own.books).toEqual({ used: 0, held: 0, counted: 0 });
          expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
        },
      );
      expect(scene.stage.deployment.provider.log).toHaveLength(1);
    },
  );

  test.each(['lost', 'answer_lost'] as const)(
    'S13 (%s) for the entry by which the mailbox would be found again: nothing is accepted without it',
    async (harm) => {
      const scene = await play(
        { faults: [{ call: /^directory for mailbox/, harm }], meets: ['S13 down'] },
        async (own) => {
          const intent = own.intend('key');
          const refused = { ok: false, code: 'unavailable', details: { step: 'registry' } };
          expect(await own.request(intent)).toMatchObject(refused);
          expect(own.find(intent)).toBeUndefined();
          expect(own.books).toEqual({ used: 0, held: 0, counted: 0 });
          expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
        },
      );
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );

  test('S13 for the consumer: nothing leaves without its word, and the job comes again', async () => {
    const fault = { call: /^directory for pm-outbound/, harm: 'lost', times: 3 } as const;
    const scene = await play({ faults: [fault], meets: [] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(80 * SECOND);
      expect(own.calls(intent)).toEqual([]);
      expect(own.row(intent).status).toBe('queued');
      await own.wait(MINUTE);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });
});

describe('S13 the directory is stale', () => {
  test('S13 it still says active for a paused identity: accepted, and canceled before anything leaves', async () => {
    const slow = { call: /^directory for request/, harm: 'answer_late', ms: 4 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['C9 paused'] }, async (own) => {
      const intent = own.intend('key');
      const reply = own.request(intent);
      await own.wait(2 * SECOND);
      await own.stage.deployment.standing.pause(own.identity().identity_id);
      expect(await reply).toMatchObject({ ok: true });
    });
    const [intent] = scene.intents;
    expect(intent && scene.row(intent).status).toBe('canceled');
    expect(scene.stage.deployment.provider.log).toEqual([]);
    expect(scene.books).toEqual({ used: 0, held: 0, counted: 0 });
  });

  test('S13 the consumer read it just before the pause: that one message leaves, once, and the next is canceled', async () => {
    const slow = { call: /^directory for pm-outbound/, harm: 'answer_late', ms: 5 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['C9 paused'] }, async (own) => {
      await own.send('first');
      await own.wait(4 * SECOND);
      await own.send('second');
      await own.stage.deployment.standing.pause(own.identity().identity_id);
    });
    expect(scene.intents.map((intent) => scene.row(intent).status)).toEqual(['delivered', 'canceled']);
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('S13 it answers later than the request may wait: nothing was tried', async () => {
    const slow = { call: /^directory for request/, harm: 'answer_late', ms: 20 * SECOND } as const;
    await play({ faults: [slow], meets: [] }, async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      await own.wait(30 * SECOND);
      expect(own.find(intent)).toBeUndefined();
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
    });
  });
});
