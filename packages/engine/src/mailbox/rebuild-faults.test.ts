import { setImmediate } from 'node:timers/promises';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { HOUR, JO, KIM, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, report } from './transport.fixture.ts';

/** P7: what goes wrong around a mailbox that was put back, and what was counted and told in the time that is forgotten. */

const BODY = { to: [JO, KIM], subject: 'Lost' };

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

/** A send to two that is accepted, handed over and paid for, and then forgotten. */
async function forgetOne(): Promise<MessageId> {
  const back = rig.storage.pointInTime();
  const sent = await rig.submit({ key: 'lost', body: BODY });
  if (!sent.ok) throw new Error(sent.code);
  await attempt(rig, sent.message.id, accepted({ provider_message_id: 'prov-lost' }));
  await rig.advance(MINUTE);
  back();
  rig.restart();
  return sent.message.id;
}

describe('the word that a mailbox was put back (P7)', () => {
  test('counts at once, though nobody can be asked: no key makes a message until the ledger is whole', async () => {
    const id = await forgetOne();
    rig.registering.failNext();
    await expect(rig.engine.rebuildLedger(true)).rejects.toThrow();
    // A request that was under way has read the index before, and knows of no event.
    const request = { ...(await rig.request({ key: 'lost', body: BODY })), last_sequence: null };
    expect(await rig.engine.submit(request)).toMatchObject({ code: 'unavailable', details: { step: 'ledger' } });
    await rig.advance(HOUR);
    expect(await rig.engine.submit(request)).toMatchObject({ ok: true, deduplicated: true, message: { id } });
  });

  test('a hold is not given back for a send that it may only have forgotten', async () => {
    const id = await forgetOne();
    rig.engine.rebuildLedger(true).catch(() => undefined);
    expect(rig.engine.sendState(id)).toBe('open');
    await rig.advance(HOUR);
    expect(rig.engine.sendState(id)).toBe('ended');
    expect(rig.engine.sendState('msg_01JD9Q3V7M8X2C4N6B5K1R0E9Z')).toBe('unknown');
  });
});

describe('a copy that cannot be read while the ledger is made again (P7, T10)', () => {
  test.each([
    ['not there', null],
    ['changed', new Uint8Array([0x21])],
  ])('for a moment is %s: the send comes back whole', async (_name, bytes) => {
    const id = await forgetOne();
    answerOnce(bytes);
    await rig.engine.rebuildLedger(true);
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', subject: 'Lost' });
  });

  test('though it is listed is tried again until it can: an accepted send is not given up for it', async () => {
    const id = await forgetOne();
    answerOnce(null, 2);
    await expect(rig.engine.rebuildLedger(true)).rejects.toThrow('listed');
    await rig.advance(MINUTE);
    expect(rig.message(id).status).toBe('uncertain');
  });

  test('and is gone for good is no send any more', async () => {
    await forgetOne();
    const [key = ''] = rig.blobs.keys;
    const get = rig.blobs.get.bind(rig.blobs);
    rig.blobs.get = (name) => {
      rig.blobs.objects.delete(key);
      return get(name);
    };
    expect(await rig.engine.rebuildLedger(true)).toMatchObject({ complete: true, messages: 0 });
  });
});

/** The store answers with this so many times, and then with what it has. */
function answerOnce(bytes: Uint8Array | null, times = 1): void {
  const get = rig.blobs.get.bind(rig.blobs);
  let left = times;
  rig.blobs.get = (key) => (left-- > 0 ? Promise.resolve(bytes) : get(key));
}

test('a key answers as before, to the millisecond, though ids are ahead of a clock that was put back (P7, K2)', async () => {
  const back = rig.storage.pointInTime();
  await rig.send({ key: 'before', body: { to: [JO] } });
  rig.clock.now -= HOUR;
  const first = await rig.submit({ key: 'lost', body: BODY });
  back();
  rig.restart();
  await rig.engine.rebuildLedger(true);
  const again = await rig.submit({ key: 'lost', body: BODY });
  expect(again).toEqual({ ...first, deduplicated: true });
});

describe('what was counted before it was forgotten (P7)', () => {
  test('is not counted again when a report or a person says once more that it was sent', async () => {
    const id = await forgetOne();
    expect(rig.quotaBooks.used).toBe(2);
    await rig.engine.rebuildLedger(true);
    const facts = { recipient: JO, subject: 'Lost', provider_message_id: 'prov-lost' };
    expect(await rig.engine.applyEvent(report(rig, 'delivered', facts))).toMatchObject({ kind: 'reconciled' });
    expect(await rig.engine.resolve(id, 'sent')).toMatchObject({ ok: true });
    await rig.advance(HOUR);
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'submitted' });
    expect(rig.quotaBooks.used).toBe(2);
  });
});

test.each([
  ['keeps', 0],
  ['keeps, though the storage fails once in between,', 1],
])('an event that happens again under its id %s the number under which it was told (P7, I9)', async (_name, faults) => {
  await rig.send({ key: 'first', body: { to: [JO] } });
  await rig.advance(MINUTE);
  const back = rig.storage.pointInTime();
  const known = { id: rig.newId('evt', rig.clock.now), occurred_at: rig.clock.now };
  await rig.engine.emitEvent('suppression.created', { address: 1 }, known);
  await rig.advance(MINUTE);
  const told = rig.dispatched.find(({ id }) => id === known.id);
  back();
  rig.restart();
  await rig.engine.rebuildLedger(true);
  await rig.engine.emitEvent('identity.updated', {}, { id: rig.newId('evt', 0), occurred_at: 0 });
  await rig.engine.emitEvent('suppression.created', { address: 1 }, known);
  let left = faults;
  rig.storage.beforeStatement = (query) => {
    if (query.startsWith('UPDATE outbox SET seq') && left-- > 0) throw new Error('storage');
  };
  await rig.advance(HOUR);
  expect(left).toBeLessThan(0);
  const row = rig.sql.first<{ seq: number; payload_json: string; dispatched_at: number | null }>(
    'SELECT seq, payload_json, dispatched_at FROM outbox WHERE event_id = ?',
    known.id,
  );
  expect(row?.seq).toBe(told?.sequence);
  expect(JSON.parse(row?.payload_json ?? '{}')).toMatchObject({ id: known.id, sequence: told?.sequence });
  expect(row?.dispatched_at).not.toBeNull();
  expect(rig.sql.all('SELECT seq FROM outbox WHERE dispatched_at IS NULL')).toEqual([]);
});

describe('while the ledger is made again (P7)', () => {
  /** Pages of one copy; before the second one answers something else happens. */
  function beforeSecondPage(run: () => Promise<void>): void {
    const inspect = rig.blobs.inspect.bind(rig.blobs);
    let pages = 0;
    rig.blobs.inspect = async (prefix, after, limit) => {
      const page = await inspect(prefix, after, Math.min(limit, 1));
      if (++pages === 2) await run();
      return page;
    };
  }

  test('news that the mailbox was put back begins it anew, and no page of before is left out', async () => {
    const back = rig.storage.pointInTime();
    const lost: MessageId[] = [];
    for (const key of ['one', 'two', 'three']) {
      const { id } = await rig.send({ key, body: BODY });
      await attempt(rig, id, accepted({ provider_message_id: key }));
      lost.push(id);
    }
    await rig.advance(MINUTE);
    back();
    rig.restart();
    // It goes on without knowing, and its next event has a number that is taken. Handing it on shows that.
    await rig.engine.emitEvent('identity.updated', {}, { id: rig.newId('evt', rig.clock.now), occurred_at: 0 });
    let handedOn: Promise<void> | undefined;
    beforeSecondPage(async () => {
      handedOn = rig.engine.alarm();
      await setImmediate();
      expect(rig.meta('rebuild')).toBeUndefined();
    });
    await rig.engine.rebuildLedger(true);
    await handedOn;
    await rig.advance(HOUR);
    expect(rig.meta('restored')).toBeUndefined();
    for (const id of lost) expect(rig.message(id).status).toBe('uncertain');
    for (const [n, key] of ['one', 'two', 'three'].entries()) {
      expect(await rig.submit({ key, body: BODY })).toMatchObject({ deduplicated: true, message: { id: lost[n] } });
    }
  });

  test.each(['while', 'after'])(
    'a request under a lost key that is under way makes no second message, when it commits %s',
    async (when) => {
      const back = rig.storage.pointInTime();
      // It told nothing, so nothing but the operator's word says that it was forgotten.
      const { id } = await rig.send({ key: 'lost', body: BODY });
      back();
      rig.restart();
      const storing = Promise.withResolvers<void>();
      const stored = Promise.withResolvers<void>();
      const put = rig.blobs.put.bind(rig.blobs);
      rig.blobs.put = async (...args) => {
        await put(...args);
        storing.resolve();
        await stored.promise;
      };
      const again = rig.submit({ key: 'lost', body: BODY });
      await storing.promise;
      if (when === 'while') {
        beforeSecondPage(async () => {
          stored.resolve();
          await again;
        });
      }
      await rig.engine.rebuildLedger(true);
      stored.resolve();
      const answer = await again;
      if (when === 'while') expect(answer).toMatchObject({ code: 'unavailable', details: { step: 'ledger' } });
      else expect(answer).toMatchObject({ deduplicated: true, message: { id } });
      expect(await rig.submit({ key: 'lost', body: BODY })).toMatchObject({ deduplicated: true, message: { id } });
      expect(rig.rows('messages')).toBe(1);
    },
  );
});
