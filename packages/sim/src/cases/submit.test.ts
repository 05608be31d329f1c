import { describe, expect, test } from 'vitest';
import { MINUTE, play, SECOND } from './scenario.fixture.ts';

/** A submit that dies at each of its steps, seen from the outside: by its client, the store, the quota and the provider. */

describe('a submit that dies', () => {
  test.each([
    ['S1', 'submit.planned', 0],
    ['S1', 'submit.composed', 0],
    ['S2', 'submit.stored', 1],
    ['S2', 'submit.reserved', 1],
    ['S5', 'submit.in_transaction', 1],
  ] as const)(
    '%s at %s was never accepted: its repeat is, once, and what was left over goes',
    async (id, crash, left) => {
      const scene = await play({ faults: [{ crash }], meets: [id] }, async (own) => {
        const intent = own.intend('key');
        expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
        expect(own.find(intent)).toBeUndefined();
        expect(own.stored('/out/')).toHaveLength(left);
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
      });
      expect(scene.stored('/out/')).toHaveLength(1);
      expect(scene.stage.deployment.provider.log).toHaveLength(1);
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );

  test('S6 at submit.committed was accepted: its repeat hears so, and it is sent once', async () => {
    const scene = await play({ faults: [{ crash: 'submit.committed' }], meets: ['S6', 'E1'] }, async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      expect(own.row(intent).status).toBe('queued');
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test.each([
    ['its own row', /^INSERT INTO messages/],
    ['a delivery', /^INSERT INTO deliveries/],
    ['its key', /INTO idempotency/],
  ])(
    'S4 between two statements, at %s, leaves nothing behind, and its repeat is accepted',
    async (_where, statement) => {
      const scene = await play({ faults: [{ statement }], meets: ['S4'] }, async (own) => {
        const intent = own.intend('key');
        expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
        expect(own.sql(intent).all('SELECT id FROM messages')).toEqual([]);
        expect(own.sql(intent).all('SELECT seq FROM threads')).toEqual([]);
        expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
        // The reservation of the first try goes back when its time is over and its mailbox knows nothing of it.
        expect(own.books).toEqual({ used: 0, held: 2, counted: 2 });
      });
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );
});

describe('the store', () => {
  test.each([
    ['fails', 'lost'],
    ['stores and loses its answer', 'answer_lost'],
  ] as const)(
    'S3 that %s: the send is refused, nothing of it stays, and its repeat is accepted',
    async (_how, harm) => {
      const scene = await play({ faults: [{ call: /^put .*\/out\//, harm }], meets: ['S3'] }, async (own) => {
        const intent = own.intend('key');
        expect(await own.request(intent)).toMatchObject({ ok: false, code: 'unavailable' });
        expect(own.stored('/out/')).toEqual([]);
        expect(own.books).toEqual({ used: 0, held: 0, counted: 0 });
        expect(await own.request(intent)).toMatchObject({ ok: true });
      });
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );

  test('S3 that takes longer than the client waits: it was accepted, and its repeat hears so', async () => {
    const slow = { call: /^put .*\/out\//, harm: 'late', ms: 45 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['S7'] }, async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      expect(await own.request(intent)).toMatchObject({ ok: false, code: 'request_in_progress' });
      await own.wait(MINUTE);
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });
});
