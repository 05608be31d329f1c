import type { MessageResource } from '@pmail/core/message/resource.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, JO, KIM, MailboxRig, MINUTE, SECOND, type SendOptions } from './mailbox.fixture.ts';
import { accepted, attempt, facts, REJECTED, Run, retryLater, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let first: MessageResource;

/** A further message of the thread that `first` began. */
function next(options: SendOptions = {}): SendOptions {
  return { ...options, body: { thread_id: first.thread_id, ...options.body } };
}

beforeEach(async () => {
  rig = new MailboxRig();
  const opening = await rig.send();
  await attempt(rig, opening.id, accepted());
  first = opening;
});

function lock(): { owner: string | null; until: number | null } {
  const row = rig.sql.first<{ lock_owner: string | null; lock_until: number | null }>(
    'SELECT lock_owner, lock_until FROM threads WHERE id = ?',
    first.thread_id,
  );
  return { owner: row?.lock_owner ?? null, until: row?.lock_until ?? null };
}

describe('a message of a thread', () => {
  test('takes the thread for two minutes', async () => {
    const { id } = await rig.send(next());
    expect(lock()).toEqual({ owner: id, until: rig.clock.now + 2 * MINUTE });
  });

  test('that begins its thread takes no lock', async () => {
    const { thread_id } = await rig.send();
    expect(rig.sql.first('SELECT lock_owner FROM threads WHERE id = ?', thread_id)).toEqual({ lock_owner: null });
  });

  test('waits for the one before it and follows when that has left', async () => {
    const before = await rig.send(next());
    let waits = 0;
    rig.whileAsleep = () => {
      if (++waits === 4) rig.sql.run('UPDATE threads SET lock_owner = NULL, lock_until = NULL');
    };
    const after = await rig.send(next());
    expect(waits).toBe(4);
    expect(lock().owner).toBe(after.id);
    expect(rig.clock.now).toBe(Date.parse(before.received_at) + SECOND);
  });

  test('does not wait for a lock that was taken before the clock was put back (K2)', async () => {
    await rig.send(next());
    rig.clock.now -= DAY;
    const after = await rig.send(next());
    expect(lock()).toEqual({ owner: after.id, until: rig.clock.now + 2 * MINUTE });
    expect(rig.clock.now).toBe(Date.parse(after.received_at));
  });

  test('is refused after ten seconds, and nothing of it is kept', async () => {
    await rig.send(next());
    const started = rig.clock.now;
    const before = rig.quotaBooks;
    const objects = rig.blobs.keys;
    expect(await rig.submit(next({ key: 'late' }))).toEqual({
      ok: false,
      code: 'thread_busy',
      details: { retry_after: 60 },
    });
    expect(rig.clock.now - started).toBe(10 * SECOND);
    expect(rig.quotaBooks).toEqual(before);
    expect(rig.blobs.keys).toEqual(objects);
    expect(rig.rows('messages')).toBe(2);
    expect(rig.rows('idempotency')).toBe(2);
    rig.clock.now += 2 * MINUTE;
    expect(await rig.submit(next({ key: 'late' }))).toMatchObject({ ok: true, deduplicated: false });
  });

  test('says how long the other will hold the thread', async () => {
    await rig.send(next());
    rig.clock.now += 80 * SECOND;
    expect(await rig.submit(next())).toMatchObject({ details: { retry_after: 30 } });
  });

  test('takes a lock whose time has passed', async () => {
    await rig.send(next());
    rig.clock.now += 2 * MINUTE;
    // To the millisecond it still holds.
    expect((await rig.submit(next())).ok).toBe(true);
    expect(rig.clock.now).toBe(Date.parse(first.received_at) + 2 * MINUTE + 250);
  });

  test('does not hold another thread up', async () => {
    await rig.send(next());
    const started = rig.clock.now;
    const other = await rig.send();
    await attempt(rig, other.id, accepted());
    await rig.send({ body: { thread_id: other.thread_id } });
    expect(rig.clock.now).toBe(started);
  });

  test('with nobody to send to does not hold its thread up', async () => {
    await rig.send(next({ directory: { send_block: [JO] } }));
    expect(lock()).toEqual({ owner: null, until: null });
    const started = rig.clock.now;
    await rig.send(next());
    expect(rig.clock.now).toBe(started);
  });

  test('in a thread that is not there is refused', async () => {
    expect(await rig.submit({ body: { thread_id: 'thr_01JD9Q3V7M8X2C4N6B5K1R0E9T' } })).toMatchObject({
      code: 'thread_not_found',
    });
    expect(await rig.submit({ body: { thread_id: 'no id' } })).toMatchObject({ code: 'thread_not_found' });
  });
});

describe('the lock', () => {
  test('runs for one more minute from the claim', async () => {
    const { id } = await rig.send(next());
    rig.clock.now += 90 * SECOND;
    new Run(rig, id).claim();
    expect(lock()).toEqual({ owner: id, until: rig.clock.now + MINUTE });
  });

  test('that somebody else has taken meanwhile is not refreshed', async () => {
    const { id } = await rig.send(next());
    rig.clock.now += 2 * MINUTE + 1;
    const other = await rig.send(next());
    const before = lock();
    new Run(rig, id).claim();
    expect(lock()).toEqual(before);
    await new Run(rig, id, 'nobody').record(accepted());
    await rig.engine.cancel(id);
    expect(lock().owner).toBe(other.id);
  });

  test.each([
    ['accepted', accepted({ provider_message_id: 'prov-2' })],
    ['rejected', REJECTED],
    ['unknown', TIMEOUT],
    ['put off', retryLater('quota')],
    ['partly put off', accepted({ provider_message_id: 'prov-2', deferred: [KIM] })],
  ])('goes with the outcome: %s', async (_what, result) => {
    const { id } = await rig.send(next({ body: { to: [JO, KIM] } }));
    await attempt(rig, id, result);
    expect(lock()).toEqual({ owner: null, until: null });
  });

  test('goes when the message is canceled, by a person or by the service', async () => {
    const canceled = await rig.send(next());
    await rig.engine.cancel(canceled.id);
    expect(lock().owner).toBeNull();
    const stopped = await rig.send(next());
    await rig.engine.stopSend(stopped.id, 'tenant_suspended');
    expect(lock().owner).toBeNull();
  });

  test('goes when the message ends without a transport call', async () => {
    const { id } = await rig.send(next());
    expect(new Run(rig, id).begin(facts({ state: 'failing' }))).toEqual({ kind: 'ended' });
    expect(lock().owner).toBeNull();
  });

  test('goes when a claim goes stale', async () => {
    const { id } = await rig.send(next());
    new Run(rig, id).claim();
    await rig.advance(5 * MINUTE);
    expect(rig.message(id).status).toBe('uncertain');
    expect(lock().owner).toBeNull();
  });
});
