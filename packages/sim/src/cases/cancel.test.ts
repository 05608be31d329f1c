import type { MarkName } from '@pmail/engine/marks.ts';
import { describe, expect, test } from 'vitest';
import { play, type Scene, SECOND } from './scenario.fixture.ts';

/** S14: a person cancels while a consumer is at it. Whoever is first wins, and nothing is both canceled and sent. */

/** Cancels the one message the moment a mark is reached; what is returned is the answer. */
async function cancelAt(own: Scene, mark: MarkName): Promise<unknown> {
  const intent = own.intend('key');
  const answer = new Promise<unknown>((resolve, reject) => {
    own.stage.universe.atMark(mark, 1, () => {
      own.remote().cancel(own.row(intent).id).then(resolve, reject);
    });
  });
  await own.request(intent);
  return answer;
}

describe('S14 a cancel that comes', () => {
  test.each(['submit.committed', 'submit.enqueued', 'consume.start'] as const)(
    'S14 at %s is before the claim: canceled, given back, and the consumer calls nobody',
    async (mark) => {
      // The claim takes its time, so that the cancel overtakes it.
      const slow = { call: /^begin /, harm: 'late', ms: 2 * SECOND } as const;
      const scene = await play({ faults: [slow], meets: ['C2'] }, async (own) => {
        expect(await cancelAt(own, mark)).toMatchObject({ ok: true, message: { status: 'canceled' } });
        await own.wait(20 * SECOND);
      });
      const [intent] = scene.intents;
      expect(intent && scene.row(intent).status).toBe('canceled');
      expect(intent && scene.events(intent)).toEqual(['message.canceled']);
      expect(scene.stage.deployment.provider.log).toEqual([]);
      expect(scene.books).toEqual({ used: 0, held: 0, counted: 0 });
    },
  );

  test('S14 while the consumer has read who sends and not claimed yet: canceled, and the claim is not given', async () => {
    const slow = { call: /^begin /, harm: 'late', ms: 2 * SECOND } as const;
    const scene = await play({ faults: [slow], meets: ['S14', 'C2'] }, async (own) => {
      expect(await cancelAt(own, 'consume.scope_read')).toMatchObject({ ok: true });
      await own.wait(20 * SECOND);
    });
    expect(scene.stage.deployment.provider.log).toEqual([]);
    expect(scene.books).toEqual({ used: 0, held: 0, counted: 0 });
  });

  test.each(['claim.committed', 'consume.claimed', 'consume.message_read', 'consume.transport_done'] as const)(
    'S14 at %s is after the claim: refused, and the message is sent once',
    async (mark) => {
      const scene = await play({ meets: ['S14'] }, async (own) => {
        expect(await cancelAt(own, mark)).toMatchObject({ ok: false, code: 'not_cancelable' });
        await own.wait(20 * SECOND);
      });
      const [intent] = scene.intents;
      expect(intent && scene.row(intent).status).toBe('delivered');
      expect(intent && scene.events(intent)).toEqual(['message.sent', 'message.delivered']);
      expect(scene.stage.deployment.provider.log).toHaveLength(1);
      expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    },
  );

  test('S14 between two attempts of a message that was put off: canceled, and there is no second call', async () => {
    const scene = await play({ provider: ['quota'], meets: ['T8'] }, async (own) => {
      const intent = await own.send('key');
      await own.wait(30 * SECOND);
      expect(own.calls(intent)).toHaveLength(1);
      expect(await own.remote().cancel(own.row(intent).id)).toMatchObject({ ok: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
    expect(scene.books).toEqual({ used: 0, held: 0, counted: 0 });
  });

  test('S14 after a relay has taken the message for some: refused, and the rest is sent', async () => {
    const to = ['a@example.net', 'b@example.net', 'c@example.net'];
    const scene = await play({ provider: ['partial', 'accept'], meets: ['T4'] }, async (own) => {
      const intent = await own.send('key', { to }, 1);
      await own.wait(20 * SECOND);
      expect(own.row(intent).status).toBe('queued');
      expect(await own.remote(1).cancel(own.row(intent).id)).toMatchObject({ ok: false, code: 'not_cancelable' });
    });
    const [intent] = scene.intents;
    expect(intent && scene.deliveries(intent)).toEqual({
      'a@example.net': 'delivered',
      'b@example.net': 'rejected',
      'c@example.net': 'delivered',
    });
  });

  test('S14 and whose process dies in it changes nothing; one that dies after it has canceled', async () => {
    for (const [crash, status, calls] of [
      ['cancel.in_transaction', 'delivered', 1],
      ['cancel.committed', 'canceled', 0],
    ] as const) {
      const pointerLost = { call: /^send to pm-outbound/, harm: 'lost' } as const;
      const scene = await play({ faults: [pointerLost, { crash }], meets: ['E2'] }, async (own) => {
        const intent = await own.send('key');
        await expect(own.remote().cancel(own.row(intent).id)).rejects.toThrow();
      });
      const [intent] = scene.intents;
      expect(intent && scene.row(intent).status).toBe(status);
      expect(scene.stage.deployment.provider.log).toHaveLength(calls);
      expect(scene.books.counted).toBe(calls);
    }
  });
});

describe('S14 the lock of a thread', () => {
  test('S14 goes from a canceled answer to the one that waits for it', async () => {
    const pointerLost = { call: /^send to pm-outbound/, harm: 'lost', nth: 2 } as const;
    const scene = await play({ faults: [pointerLost], meets: ['E2'] }, async (own) => {
      const first = await own.send('first');
      await own.wait(20 * SECOND);
      const [a, b] = [own.answer('a', first), own.answer('b', first)];
      expect(await own.request(a)).toMatchObject({ ok: true });
      const waiting = own.request(b);
      await own.wait(2 * SECOND);
      expect(b.answers).toEqual([]);
      const [accepted] = a.answers;
      expect(accepted && (await own.remote().cancel(accepted.id))).toMatchObject({ ok: true });
      expect(await waiting).toMatchObject({ ok: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(2);
  });

  test('S14 is not taken from an answer that waits too long for its transport: the other is told to come back', async () => {
    const pointerLost = { call: /^send to pm-outbound/, harm: 'lost', nth: 2 } as const;
    const scene = await play({ faults: [pointerLost], meets: ['E2'] }, async (own) => {
      const first = await own.send('first');
      await own.wait(20 * SECOND);
      const [a, b] = [own.answer('a', first), own.answer('b', first)];
      expect(await own.request(a)).toMatchObject({ ok: true });
      expect(await own.request(b)).toMatchObject({
        ok: false,
        code: 'thread_busy',
        details: { retry_after: expect.any(Number) as number },
      });
      expect(own.books.held).toBe(1);
      await own.pursue(b);
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(3);
    expect(scene.books).toEqual({ used: 3, held: 0, counted: 3 });
  });
});
