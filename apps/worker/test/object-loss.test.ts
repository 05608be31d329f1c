import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { MAILBOX_MIGRATIONS } from '@pmail/engine/mailbox/schema.ts';
import { QUOTA_MIGRATIONS } from '@pmail/engine/quota/schema.ts';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { consume, diesOnce, FaultLab, outboundOf, PLATFORM_FAILURES, platformError, providerLog } from './faults.ts';
import { accepted, atRest, inMailbox, letter, mailboxObject, post, quotaObject, until, waiting } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, refusal, sql } from './support.ts';

/** Objects that go away between two steps, and objects whose storage is of the version before or after the code's. */

keepStorage();

let own: FaultLab;

beforeAll(async () => {
  own = await FaultLab.make();
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a mailbox that cannot be reached', () => {
  test.each(PLATFORM_FAILURES)(
    'with an error %s refuses a send, and its repeat is the first (P6)',
    async (_what, facts) => {
      vi.spyOn(console, 'error').mockReturnValue();
      const from = await own.somebody();
      const get = env.MAILBOX.get.bind(env.MAILBOX);
      vi.spyOn(env.MAILBOX, 'get').mockImplementation((id, options) => {
        const stub = get(id, options);
        return new Proxy(stub, {
          get: (target, name) =>
            name === 'submit' ? () => Promise.reject(platformError(facts)) : (Reflect.get(target, name) as unknown),
        });
      });
      const input = { params: { identity_id: from }, body: letter(), headers: { 'idempotency-key': 'k' } };
      expect((await refusal(own.lab.key, 'messages.send', input)).code).toBe('unavailable');
      vi.restoreAllMocks();
      expect(await outboundOf(from)).toEqual([]);
      expect((await accepted(own.lab.key, from, letter(), 'k')).deduplicated).toBe(false);
    },
  );
});

/** The mailbox dies at one call of a consumer, which makes that call again; the provider is asked once. */
async function expectOneCall(call: 'beginTransport' | 'recordOutcome', when: 'before' | 'after'): Promise<void> {
  vi.spyOn(console, 'warn').mockReturnValue();
  const from = await own.somebody();
  const { id } = await waiting(own.lab.key, from, letter({ to: ['delivered@simulator.invalid'] }));
  const { to, taken } = providerLog();
  const dying = diesOnce(call, when);
  const { explicitAcks } = await consume(from, id, to);
  expect([dying.calls(), explicitAcks.length]).toEqual([2, 1]);
  expect(taken).toEqual([id]);
  // The queue may bring the pointer as often as it likes.
  for (let n = 0; n < 2; n++) expect((await consume(from, id, to)).explicitAcks).toHaveLength(1);
  await until(async () => expect(await own.status(from, id)).toBe('delivered'));
  expect(await inMailbox(from, 'SELECT n, result, late FROM attempts')).toEqual([
    { n: 1, result: 'accepted', late: 0 },
  ]);
  expect(taken).toEqual([id]);
}

/** The alarm of an object goes off as if so much time had passed. */
async function later(ms: number, object: DurableObjectStub): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
  try {
    await runDurableObjectAlarm(object);
  } finally {
    vi.useRealTimers();
  }
}

async function inQuota(query: string, ...bindings: string[]): Promise<object[]> {
  return runInDurableObject(await quotaObject(own.lab.tenant), (_quota, { storage }) => [
    ...storage.sql.exec(query, ...bindings),
  ]);
}

/** What the tenant's quota holds, and has counted for an identity. */
async function books(from: string): Promise<object> {
  return {
    holds: await inQuota('SELECT * FROM holds'),
    counters: await inQuota('SELECT * FROM counters WHERE metric = ? AND value > 0', `sends:${from}`),
    held: await inQuota("SELECT held FROM allowances WHERE feature = 'sends'"),
  };
}

describe('a mailbox whose instance dies', () => {
  test('while its message is on the way to the object store has kept nothing of it but a copy to be collected (S2, P1)', async () => {
    vi.spyOn(console, 'error').mockReturnValue();
    const from = await own.somebody();
    await atRest(from);
    const nothing = { holds: [], counters: [], held: [{ held: 0 }] };
    // What the tests before have sent is settled first.
    await until(async () => expect(await books(from)).toEqual(nothing));
    const keys: string[] = [];
    const put = env.BLOBS.put.bind(env.BLOBS) as (key: string, ...rest: unknown[]) => Promise<unknown>;
    vi.spyOn(env.BLOBS, 'put').mockImplementationOnce((async (key: string, ...rest: unknown[]) => {
      keys.push(key);
      const object = await put(key, ...rest);
      await runInDurableObject(await mailboxObject(from), (_mailbox, state) => state.abort('evicted')).catch(
        () => null,
      );
      return object;
    }) as never);
    expect((await post(own.lab.key, from, letter(), 'k')).status).toBeGreaterThanOrEqual(500);
    expect(await outboundOf(from)).toEqual([]);
    expect(await inMailbox(from, 'SELECT * FROM idempotency')).toEqual([]);
    // The copy is there, and a hold that was asked for meanwhile; nobody knows of either.
    const [orphan = ''] = keys;
    expect(await env.BLOBS.head(orphan)).not.toBeNull();
    const left = await inQuota('SELECT ref FROM holds WHERE identity_id = ?', from);
    expect(left).toEqual([{ ref: /msg_[0-9A-Z]{26}/.exec(orphan)?.[0] }]);
    await later(11 * 60_000, await quotaObject(own.lab.tenant));
    expect(await books(from)).toEqual(nothing);
    const { deduplicated, id } = await accepted(own.lab.key, from, letter(), 'k');
    expect(deduplicated).toBe(false);
    expect(orphan).not.toContain(id);
    expect(await outboundOf(from)).toHaveLength(1);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    await atRest(from);
    await later(26 * 3_600_000, await mailboxObject(from));
    const copies = (await env.BLOBS.list({ prefix: orphan.slice(0, orphan.lastIndexOf('/')) })).objects;
    expect(copies.map(({ key }) => key)).toEqual([expect.stringContaining(id)]);
  });

  test.each([
    ['before it was given', 'before'],
    ['after it was given', 'after'],
  ] as const)('with a claim %s: asking again gets it, and the message leaves once (C4, P1)', (_what, when) =>
    expectOneCall('beginTransport', when),
  );

  test.each([
    ['before it was written', 'before'],
    ['after it was written', 'after'],
  ] as const)('with an outcome %s: reporting again is heard by the next one (O1, O2, P1)', (_what, when) =>
    expectOneCall('recordOutcome', when),
  );

  test('after a cancel was on disk: the repeat hears that it is canceled already (S14, P1)', async () => {
    vi.spyOn(console, 'error').mockReturnValue();
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    diesOnce('cancel', 'after');
    const params = { identity_id: from, message_id: id };
    expect((await refusal(own.lab.key, 'messages.cancel', { params })).code).toBe('internal_error');
    expect(await own.status(from, id)).toBe('canceled');
    expect((await consume(from, id)).explicitAcks).toHaveLength(1);
    expect(await inMailbox(from, 'SELECT * FROM attempts')).toEqual([]);
  });
});

/** Storage as code of another version has left it, found by a new instance. */
async function rewritten(from: string, ...statements: string[]): Promise<void> {
  await runInDurableObject(await mailboxObject(from), (_mailbox, { storage }) => {
    storage.transactionSync(() => {
      for (const text of statements) storage.sql.exec(text);
    });
  });
  await evictDurableObject(await mailboxObject(from));
}

/** Takes away again what the newest step of a schema has brought. A new step fails here until its own stands beside it. */
function undone(step: { version: number } | undefined, undo: Record<number, string>): string[] {
  const version = step?.version ?? 0;
  const statement = undo[version];
  if (statement === undefined) throw new Error(`nothing is known of what step ${version} has brought`);
  return [statement, `UPDATE meta SET v = '${version - 1}' WHERE k = 'schema_version'`];
}

describe('storage of another version', () => {
  test('of the one before, in a mailbox with a queued message and its key, is brought up to date and goes on (P3)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from, letter(), 'k');
    await atRest(from);
    const notes = "SELECT k, v FROM meta WHERE k IN ('schema_version', 'cleaned_before', 'cleaned_last') ORDER BY k";
    const key = await inMailbox(from, 'SELECT * FROM idempotency');
    const newest = MAILBOX_MIGRATIONS.at(-1);
    await rewritten(from, ...undone(newest, { 4: "DELETE FROM meta WHERE k IN ('cleaned_before', 'cleaned_last')" }));
    expect(await own.status(from, id)).toBe('queued');
    // The step that brings these knows no better time than that of the last message.
    const [message] = await inMailbox(from, 'SELECT CAST(received_at AS TEXT) AS at FROM messages WHERE id = ?', id);
    const at = message?.['at'];
    expect(await inMailbox(from, notes)).toEqual([
      { k: 'cleaned_before', v: at },
      { k: 'cleaned_last', v: at },
      { k: 'schema_version', v: String(newest?.version) },
    ]);
    expect(await inMailbox(from, 'SELECT * FROM idempotency')).toEqual(key);
    expect(await accepted(own.lab.key, from, letter(), 'k')).toMatchObject({ id, deduplicated: true });
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    expect(await outboundOf(from)).toEqual([{ id, status: 'delivered' }]);
  });

  test('of the one before, in a quota that holds a send, is brought up to date and counts it (P3)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    await atRest(from);
    const newest = QUOTA_MIGRATIONS.at(-1);
    const quota = await quotaObject(own.lab.tenant);
    const statements = undone(newest, { 2: 'ALTER TABLE applied DROP COLUMN accepted' });
    await runInDurableObject(quota, (_quota, { storage }) => {
      storage.transactionSync(() => {
        for (const text of statements) storage.sql.exec(text);
      });
    });
    await evictDurableObject(quota);
    expect(await inQuota("SELECT v FROM meta WHERE k = 'schema_version'")).toEqual([{ v: String(newest?.version) }]);
    expect(await inQuota('SELECT units FROM holds WHERE ref = ?', id)).toEqual([{ units: 1 }]);
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    await atRest(from);
    expect(await inQuota('SELECT * FROM holds WHERE ref = ?', id)).toEqual([]);
    // The first recipient, by its bit.
    expect(await inQuota('SELECT n, accepted FROM applied WHERE ref = ? AND n > 0', id)).toEqual([
      { n: 1, accepted: 1 },
    ]);
  });

  test('of the first is brought through all steps with everything in it, and goes on sending (P3)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    await atRest(from);
    const [before] = await inMailbox(from, "SELECT v FROM meta WHERE k = 'schema_version'");
    await rewritten(
      from,
      'DROP TABLE lost_sends',
      'ALTER TABLE deliveries DROP COLUMN reported_at',
      "DELETE FROM meta WHERE k IN ('cleaned_before', 'cleaned_last')",
      "UPDATE meta SET v = '1' WHERE k = 'schema_version'",
    );
    expect(await own.status(from, id)).toBe('queued');
    expect(await inMailbox(from, "SELECT v FROM meta WHERE k = 'schema_version'")).toEqual([before]);
    expect(await inMailbox(from, 'SELECT reported_at FROM deliveries')).toEqual([{ reported_at: null }]);
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
  });

  test('of the one after is left as it is, and serves the code of before it (P3)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    await atRest(from);
    await rewritten(
      from,
      "ALTER TABLE messages ADD COLUMN tone TEXT NOT NULL DEFAULT 'plain'",
      'CREATE TABLE moods (id TEXT PRIMARY KEY)',
      "UPDATE meta SET v = '99' WHERE k = 'schema_version'",
    );
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    await accepted(own.lab.key, from);
    expect(await inMailbox(from, "SELECT v FROM meta WHERE k = 'schema_version'")).toEqual([{ v: '99' }]);
    expect(await inMailbox(from, 'SELECT DISTINCT tone FROM messages')).toEqual([{ tone: 'plain' }]);
  });

  test('of a directory one step ahead serves the code of before it (P3)', async () => {
    await sql('ALTER TABLE identities ADD COLUMN tone TEXT');
    await sql("ALTER TABLE event_index ADD COLUMN tone TEXT NOT NULL DEFAULT 'plain'");
    const from = await own.somebody();
    const { id } = await accepted(own.lab.key, from);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    await atRest(from);
    expect((await call(own.lab.key, 'identities.get', { params: { identity_id: from } })).status).toBe('active');
  });
});
