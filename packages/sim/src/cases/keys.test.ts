import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, play } from './scenario.fixture.ts';

/** A key used again: at once, with another body, and when its time has passed. */

const MONTH = 30 * DAY;

describe('S9 a key used again after 30 days', () => {
  test('S9 is new: the same request makes a second message, a moment before it does not', async () => {
    const scene = await play({ meets: ['S9'], storm: MONTH + HOUR, quietAfter: 5 * MINUTE }, async (own) => {
      const first = await own.send('key');
      const accepted = Date.parse(first.answers[0]?.received_at ?? '');
      await own.wait(accepted + MONTH - own.now - MINUTE);
      expect(await own.request(first)).toMatchObject({ ok: true, deduplicated: true });
      await own.wait(2 * MINUTE);
      own.stage.since = own.now;
      const again = own.intend('key', { subject: 'key' });
      expect(await own.request(again)).toMatchObject({ ok: true, deduplicated: false });
      expect(again.answers[0]?.id).not.toBe(first.answers[0]?.id);
    });
    const log = scene.stage.deployment.provider.log;
    expect(log.map(({ accepted }) => accepted)).toEqual([['jo@example.net'], ['jo@example.net']]);
    expect(new Set(log.map(({ message_id }) => message_id)).size).toBe(2);
  });

  test('S9 with another body is no conflict any more, and the first message is not touched', async () => {
    const scene = await play({ meets: ['S9'], storm: MONTH + HOUR, quietAfter: 5 * MINUTE }, async (own) => {
      const first = await own.send('key');
      await own.wait(MONTH + MINUTE);
      own.stage.since = own.now;
      const other = own.intend('key', { subject: 'other', text: 'Another text.' });
      expect(await own.request(other)).toMatchObject({ ok: true, deduplicated: false });
      expect(own.row(first).status).toBe('delivered');
    });
    const [first, other] = scene.intents;
    expect([first, other].map((intent) => intent && scene.row(intent).status)).toEqual(['delivered', 'delivered']);
    // Only the new life of the key is remembered.
    expect(first && scene.sql(first).all('SELECT message_id FROM idempotency')).toEqual([
      { message_id: other && scene.row(other).id },
    ]);
  });
});

describe('two requests under one key', () => {
  test('S7 at once: one is accepted, the other waits for it and gets the same answer', async () => {
    const slow = { call: /^put /, harm: 'late', ms: 2_000 } as const;
    const scene = await play({ faults: [slow], meets: ['S7'] }, async (own) => {
      const intent = own.intend('key');
      const replies = await Promise.all([own.request(intent), own.request(intent)]);
      const heard = new Set(replies.map((reply) => (reply.ok ? reply.deduplicated : reply.code)));
      expect(heard).toEqual(new Set([false, 'request_in_progress']));
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('S8 of which the second is another: it is a conflict that names the first, and has no effect', async () => {
    const scene = await play({ meets: ['S8'] }, async (own) => {
      const intent = await own.send('key');
      const other = { ...intent, body: { ...intent.body, text: 'Another text.' }, answers: [] };
      expect(await own.request(other)).toMatchObject({
        ok: false,
        code: 'idempotency_conflict',
        details: { original_message_id: intent.answers[0]?.id },
      });
    });
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
    expect(scene.stored('/out/')).toHaveLength(1);
  });
});

describe('the answer to a send', () => {
  test('S6 that is lost: the repeat is told of the same message', async () => {
    const scene = await play({ faults: [{ call: /^submit key/, harm: 'answer_lost' }], meets: ['S6'] }, async (own) => {
      const intent = own.intend('key');
      expect(await own.request(intent)).toEqual({ ok: false, code: 'timeout' });
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });
});
