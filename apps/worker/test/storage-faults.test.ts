import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { TenantQuota } from '../src/index.ts';
import { consume, FaultLab, outboundOf, PLATFORM_FAILURES, platformError } from './faults.ts';
import {
  accepted,
  atRest,
  inMailbox,
  letter,
  mailboxObject,
  post,
  quotaObject,
  quotaRemote,
  until,
  waiting,
} from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, refusal, sql } from './support.ts';

/** Object store, directory, queues and quota fail, answer slowly, or do what they were asked and lose the answer. */

keepStorage();

let own: FaultLab;

beforeAll(async () => {
  own = await FaultLab.make();
});

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue();
  vi.spyOn(console, 'warn').mockReturnValue();
});

afterEach(() => {
  vi.restoreAllMocks();
});

const keyed = (from: string) => ({
  params: { identity_id: from },
  body: letter(),
  headers: { 'idempotency-key': 'k' },
});

const usage = async () => {
  const { stub, call: context } = await quotaRemote(own.lab.tenant);
  const { allowances } = (await stub.usage(context)) as unknown as { allowances?: unknown };
  return allowances;
};

/** What the quota holds and has counted for one identity; those of other tests may still be on their way. */
const booked = async (from: string) =>
  runInDurableObject(await quotaObject(own.lab.tenant), (_quota, { storage }) => [
    ...storage.sql.exec('SELECT ref, units FROM holds WHERE identity_id = ?', from),
    ...storage.sql.exec('SELECT value FROM counters WHERE metric = ?', `sends:${from}`),
  ]);

describe('the object store', () => {
  test.each(PLATFORM_FAILURES)(
    'with an error %s keeps nothing of a send, and its repeat is the first (S3)',
    async (_what, facts) => {
      const from = await own.somebody();
      const broken = vi.spyOn(env.BLOBS, 'put').mockRejectedValue(platformError(facts));
      expect(await refusal(own.lab.key, 'messages.send', keyed(from))).toEqual({ code: 'unavailable', step: 'store' });
      broken.mockRestore();
      await atRest(from);
      expect(await outboundOf(from)).toEqual([]);
      expect((await accepted(own.lab.key, from, letter(), 'k')).deduplicated).toBe(false);
    },
  );

  test('that is full refuses every send with 503 and keeps nothing; what was accepted leaves, and later all is well (P5)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    await atRest(from);
    const copies = async () => (await env.BLOBS.list({ prefix: `t/${own.lab.tenant}/i/${from}/` })).objects.length;
    const before = [await booked(from), await copies()];
    expect(before).toEqual([[{ ref: id, units: 1 }, { value: 1 }], 1]);
    const full = vi.spyOn(env.BLOBS, 'put').mockRejectedValue(new Error('put: There is no room left. (10001)'));
    for (let n = 0; n < 3; n++) {
      expect(await refusal(own.lab.key, 'messages.send', keyed(from))).toEqual({ code: 'unavailable', step: 'store' });
    }
    await atRest(from);
    expect([await booked(from), await copies()]).toEqual(before);
    expect(await outboundOf(from)).toEqual([{ id, status: 'queued' }]);
    expect(await inMailbox(from, 'SELECT * FROM idempotency')).toHaveLength(1);
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    full.mockRestore();
    const again = await accepted(own.lab.key, from, letter(), 'k');
    expect(again.deduplicated).toBe(false);
    await until(async () => expect(await own.status(from, again.id)).toBe('delivered'));
  });

  test('that stores and loses its answer leaves no copy behind (S3)', async () => {
    const from = await own.somebody();
    const put = env.BLOBS.put.bind(env.BLOBS) as (key: string, ...rest: unknown[]) => Promise<unknown>;
    const keys: string[] = [];
    const broken = vi.spyOn(env.BLOBS, 'put').mockImplementation((async (key: string, ...rest: unknown[]) => {
      keys.push(key);
      await put(key, ...rest);
      throw platformError({ retryable: true });
    }) as never);
    expect((await post(own.lab.key, from, letter(), 'k')).status).toBe(503);
    broken.mockRestore();
    await atRest(from);
    expect(keys).toHaveLength(1);
    expect(await env.BLOBS.head(keys[0] ?? '')).toBeNull();
    expect((await accepted(own.lab.key, from, letter(), 'k')).deduplicated).toBe(false);
  });

  test('that answers slowly holds up only those who wait for it (S3)', async () => {
    const [slow, quick] = [await own.somebody(), await own.somebody()];
    const gate = Promise.withResolvers<void>();
    const put = env.BLOBS.put.bind(env.BLOBS) as (key: string, ...rest: unknown[]) => Promise<unknown>;
    vi.spyOn(env.BLOBS, 'put').mockImplementation((async (key: string, ...rest: unknown[]) => {
      if (key.includes(slow)) await gate.promise;
      return put(key, ...rest);
    }) as never);
    const waits = post(own.lab.key, slow, letter(), 'k');
    await accepted(own.lab.key, quick);
    // The same key meanwhile is told to wait, and others of the mailbox go their way.
    await until(async () => {
      expect((await refusal(own.lab.key, 'messages.send', keyed(slow))).code).toBe('request_in_progress');
    });
    expect((await call(own.lab.key, 'messages.list', { params: { identity_id: slow } })).data).toEqual([]);
    gate.resolve();
    expect((await waits).status).toBe(202);
    expect(await outboundOf(slow)).toHaveLength(1);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['is overloaded', () => Promise.reject(platformError({ overloaded: true }))],
    ['has lost the copy', () => Promise.resolve(null)],
    ['gives another copy', async () => ({ arrayBuffer: async () => new TextEncoder().encode('other').buffer })],
  ])('that %s when a message is to leave puts it off, and nothing is handed over (T10, P6)', async (_what, answer) => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    const broken = vi.spyOn(env.BLOBS, 'get').mockImplementation(answer as never);
    expect((await consume(from, id)).explicitAcks).toHaveLength(1);
    broken.mockRestore();
    expect(await own.status(from, id)).toBe('queued');
    expect(await inMailbox(from, 'SELECT result FROM attempts')).toEqual([{ result: 'retry_later' }]);
    expect(await inMailbox(from, "SELECT k FROM meta WHERE k LIKE 'backoff:%'")).toHaveLength(1);
  });
});

describe('the directory', () => {
  test('that is away when a message is to leave keeps its pointer in the queue, and no claim is taken (S13, P6)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    await atRest(from);
    const batch = env.DB.batch.bind(env.DB);
    let asked = 0;
    const broken = vi.spyOn(env.DB, 'batch').mockImplementation((statements) => {
      // The first call is the test's own, which looks the mailbox up.
      if (asked++ === 0) return batch(statements);
      return Promise.reject(new Error('D1_ERROR: D1 DB is overloaded. Requests queued for too long.'));
    });
    const result = await consume(from, id);
    broken.mockRestore();
    expect(result.explicitAcks).toEqual([]);
    expect(result.retryMessages).toHaveLength(1);
    expect(await inMailbox(from, 'SELECT * FROM attempts')).toEqual([]);
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
  });

  test('that is away when events are to be told leaves them in the mailbox, and all come in order (P6)', async () => {
    const from = await own.somebody();
    await atRest(from);
    const prepare = env.DB.prepare.bind(env.DB);
    let refused = 0;
    const broken = vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
      if (/INSERT.*event_index/s.test(query)) {
        refused++;
        throw new Error('D1_ERROR: Network connection lost.');
      }
      return prepare(query);
    });
    const { id } = await waiting(own.lab.key, from);
    await call(own.lab.key, 'messages.cancel', { params: { identity_id: from, message_id: id } });
    await until(() => expect(refused).toBeGreaterThan(0));
    expect(await inMailbox(from, 'SELECT seq FROM outbox WHERE dispatched_at IS NULL')).not.toEqual([]);
    broken.mockRestore();
    // The next try is half a minute away; the alarm is made to come at that time.
    vi.setSystemTime(Date.now() + 61_000);
    try {
      await runDurableObjectAlarm(await mailboxObject(from));
    } finally {
      vi.useRealTimers();
    }
    await atRest(from);
    const rows = await sql('SELECT sequence, type FROM event_index WHERE identity_id = ? ORDER BY sequence', from);
    expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_row, n) => n + 1));
    expect(rows.at(-1)).toMatchObject({ type: 'message.canceled' });
  });
});

describe('the queue', () => {
  test('that takes a pointer and loses its answer brings it once (E3)', async () => {
    const from = await own.somebody();
    const queue = env.Q_OUTBOUND.send.bind(env.Q_OUTBOUND);
    const broken = vi.spyOn(env.Q_OUTBOUND, 'send').mockImplementation(async (job, options) => {
      await queue(job, options);
      if (job.kind === 'send' && job.identity_id === from) throw platformError({ retryable: true });
      return undefined as never;
    });
    const { id } = await accepted(own.lab.key, from);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    broken.mockRestore();
    expect(await inMailbox(from, 'SELECT result FROM attempts')).toEqual([{ result: 'accepted' }]);
  });

  test('that cannot take a message that was put off keeps the old pointer, which finds its claim used up (E2)', async () => {
    const from = await own.somebody();
    const { id } = await waiting(own.lab.key, from);
    vi.spyOn(env.BLOBS, 'get').mockResolvedValue(null);
    vi.spyOn(env.Q_OUTBOUND, 'send').mockRejectedValue(platformError({ overloaded: true }));
    const result = await consume(from, id);
    vi.restoreAllMocks();
    expect(result.retryMessages).toHaveLength(1);
    expect(await own.status(from, id)).toBe('queued');
    await consume(from, id);
    await until(async () => expect(await own.status(from, id)).toBe('delivered'));
    const attempts = await inMailbox(from, 'SELECT result FROM attempts ORDER BY n');
    expect(attempts).toEqual([{ result: 'retry_later' }, { result: 'accepted' }]);
  });
});

describe('the quota', () => {
  test.each(PLATFORM_FAILURES)(
    'with an error %s refuses a send, and its repeat is the first (S12)',
    async (_what, facts) => {
      const from = await own.somebody();
      const broken = vi.spyOn(TenantQuota.prototype, 'reserve').mockImplementation(() => {
        throw platformError(facts);
      });
      expect(await refusal(own.lab.key, 'messages.send', keyed(from))).toEqual({ code: 'unavailable', step: 'quota' });
      broken.mockRestore();
      await atRest(from);
      expect((await accepted(own.lab.key, from, letter(), 'k')).deduplicated).toBe(false);
    },
  );

  test('that reserves and loses its answer gets the reservation back (S11)', async () => {
    const from = await own.somebody();
    const before = await usage();
    const reserve = Reflect.get<TenantQuota, 'reserve'>(TenantQuota.prototype, 'reserve');
    const broken = vi.spyOn(TenantQuota.prototype, 'reserve').mockImplementation(function (this: TenantQuota, ...args) {
      reserve.apply(this, args);
      throw platformError({ retryable: true });
    });
    expect(await refusal(own.lab.key, 'messages.send', keyed(from))).toEqual({ code: 'unavailable', step: 'quota' });
    broken.mockRestore();
    await atRest(from);
    expect(await usage()).toEqual(before);
  });
});
