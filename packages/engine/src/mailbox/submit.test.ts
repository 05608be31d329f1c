import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Crash, HOUR, JO, MailboxRig, MINUTE, SECOND, type SendOptions } from './mailbox.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

/** Nothing of a send is there: no row, no object, no count, no pointer. */
async function expectNothing(): Promise<void> {
  for (const table of ['messages', 'deliveries', 'idempotency', 'threads', 'contacts', 'attachments', 'labels']) {
    expect(rig.rows(table), table).toBe(0);
  }
  expect(rig.sql.all("SELECT k FROM meta WHERE k LIKE 'dispatch:%'")).toEqual([]);
  expect(rig.outbound.sent).toEqual([]);
  expect(rig.eventTypes).toEqual([]);
  await passHold();
  expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 0, counted: 0, tenant: 0 });
}

/** Long enough that the quota has asked about every hold that nobody settled. */
async function passHold(): Promise<void> {
  await rig.advance(10 * MINUTE);
  await rig.quota.alarm();
}

async function sweep(): Promise<void> {
  await rig.advance(26 * HOUR);
}

describe('a send', () => {
  test('is stored, counted, put on the queue and answered', async () => {
    const message = await rig.send({ body: { to: [JO], subject: 'Hi', text: 'Hello' } });
    expect(message).toMatchObject({ status: 'queued', direction: 'outbound', operation: 'send', subject: 'Hi' });
    expect(rig.outbound.sent).toEqual([
      {
        job: { v: 1, kind: 'send', ...rig.owner, message_id: message.id, request_id: 'req_01JD9Q3V7M8X2C4N6B5K1R0E9T' },
        delay_ms: 0,
      },
    ]);
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
    expect(rig.registry.has(rig.owner.identity_id)).toBe(true);
  });

  test.each<[string, SendOptions, string]>([
    ['paused identity', { identity: { status: 'paused', pause_reason: 'manual' } }, 'identity_paused'],
    ['bad recipient', { body: { to: ['jo'] } }, 'address_invalid'],
    ['nothing to say', { body: { text: undefined } }, 'invalid_request'],
    ['too much to say', { body: { text: 'x'.repeat(5_240_000) } }, 'message_too_large'],
  ])('that the policy refuses leaves nothing: %s', async (_what, options, code) => {
    expect(await rig.submit(options)).toMatchObject({ ok: false, code });
    expect(rig.blobs.puts.calls).toBe(0);
    expect(rig.reserves.calls).toBe(0);
    await expectNothing();
  });

  test('that is only tried stores, counts and locks nothing', async () => {
    const before = rig.storage.dump();
    const answer = await rig.engine.dryRun(await rig.request({ directory: { send_block: ['@example.org'] } }));
    expect(answer).toEqual({ ok: true, recipients: [{ address: JO, field: 'to', status: 'queued', reason: null }] });
    expect(rig.storage.dump()).toBe(before);
    expect(rig.blobs.puts.calls + rig.reserves.calls + rig.registering.calls).toBe(0);
  });

  test.each([
    [{ suppressions: { [JO]: 'hard_bounce' } } as const, 'all_recipients_suppressed', 'hard_bounce'],
    [{ send_block: [JO] }, 'recipient_blocked', 'send_block'],
  ])('that is only tried says why nobody is left (R32)', async (directory, code, reason) => {
    expect(await rig.engine.dryRun(await rig.request({ directory }))).toEqual({
      ok: false,
      code,
      details: { recipients: [{ address: JO, field: 'to', status: 'suppressed', reason }] },
    });
  });
});

describe('a crash before the commit', () => {
  test('before the store leaves nothing (S1)', async () => {
    rig.dieAt('submit.composed');
    await expect(rig.submit()).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.blobs.objects.size).toBe(0);
    await expectNothing();
  });

  test.each(['submit.stored', 'submit.reserved'] as const)(
    'at %s leaves an orphan that is collected, and a hold that is given back (S2, S5, S10)',
    async (mark) => {
      rig.dieAt(mark);
      await expect(rig.submit()).rejects.toThrow(Crash);
      rig.restart();
      expect(rig.blobs.objects.size).toBe(1);
      expect(rig.quotaBooks).toMatchObject({ held: 1, counted: 1 });
      await expectNothing();
      await sweep();
      expect(rig.blobs.objects.size).toBe(0);
    },
  );

  test('and the same request again is one message (S2)', async () => {
    rig.dieAt('submit.reserved');
    await expect(rig.submit()).rejects.toThrow(Crash);
    rig.restart();
    const message = await rig.send({ key: 'k-1' });
    await passHold();
    expect(rig.quotaBooks).toMatchObject({ held: 1, holds: 1, counted: 1, tenant: 1 });
    await sweep();
    expect(rig.blobs.keys).toEqual([expect.stringContaining(message.id)]);
  });
});

describe('the object store', () => {
  test('that fails refuses the send, and nothing is kept (S3)', async () => {
    rig.blobs.puts.failNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    expect(rig.quotaBooks).toMatchObject({ held: 0, counted: 0 });
    await expectNothing();
  });

  test('that stores and loses the answer refuses the send, and the object goes (S3)', async () => {
    rig.blobs.puts.loseNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    expect(rig.blobs.objects.size).toBe(0);
    await expectNothing();
  });

  test('that stores only after everyone has given up leaves an orphan, which is collected (S3)', async () => {
    rig.blobs.puts.delayNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    const message = await rig.send({ key: 'k-1' });
    rig.blobs.puts.land();
    expect(rig.blobs.objects.size).toBe(2);
    await sweep();
    expect(rig.blobs.keys).toEqual([expect.stringContaining(message.id)]);
  });

  test('that takes the mail but not its attachment keeps neither (S3)', async () => {
    const attachments = [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }];
    const request = await rig.request({ body: { attachments } });
    const open = rig.blobs.puts.hold();
    const answer = rig.engine.submit(request);
    rig.blobs.puts.failNext();
    open();
    expect(await answer).toMatchObject({ ok: false, code: 'unavailable' });
    expect(rig.blobs.objects.size).toBe(0);
    await expectNothing();
  });

  test('that does not delete leaves an orphan, which is collected (S3)', async () => {
    rig.reserves.failNext();
    rig.blobs.deletes.failNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    expect(rig.blobs.objects.size).toBe(1);
    await sweep();
    expect(rig.blobs.objects.size).toBe(0);
  });
});

/** Tables that a send writes to, or leaves a debt in. */
const WRITTEN = [
  'messages',
  'deliveries',
  'idempotency',
  'threads',
  'contacts',
  'labels',
  'fts',
  'attachments',
  'outbox',
  'quota_tasks',
];
const POINTERS = "SELECT k FROM meta WHERE k LIKE 'dispatch:%' OR k = 'alarm:dispatch'";

describe('the transaction', () => {
  test('rolls everything back wherever it fails (S4)', async () => {
    const body = {
      labels: ['a'],
      attachments: [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }],
    };
    let failures = 0;
    for (let at = 1; ; at++) {
      let count = 0;
      let inside = false;
      rig.storage.beforeStatement = (query) => {
        // The first statement that only the transaction runs; reads before it change nothing.
        inside ||= /^INSERT INTO threads/.test(query);
        if (inside && ++count === at) throw new Error('disk I/O error');
      };
      const answer = await rig.submit({ body }).catch((error: unknown) => error);
      rig.storage.beforeStatement = () => {};
      if (!(answer instanceof Error)) break;
      failures++;
      for (const table of WRITTEN) expect(rig.rows(table), `${table} after a failure at statement ${at}`).toBe(0);
      expect(rig.sql.all(POINTERS), `pointers after a failure at statement ${at}`).toEqual([]);
      expect(rig.outbound.sent).toEqual([]);
    }
    expect(failures).toBeGreaterThan(12);
    for (const table of ['messages', 'deliveries', 'attachments', 'idempotency']) expect(rig.rows(table)).toBe(1);
    expect(rig.sql.all(POINTERS)).toHaveLength(2);
    await passHold();
    expect(rig.quotaBooks).toMatchObject({ held: 1, holds: 1, counted: 1, tenant: 1 });
  });

  test('that dies at its end commits nothing, and the alarm stands for the next send all the same (S4)', async () => {
    const open = rig.blobs.puts.hold();
    const [first, second] = [await rig.request({ key: 'k-1' }), await rig.request({ key: 'k-2' })];
    rig.dieAt('submit.in_transaction');
    const answers = Promise.allSettled([rig.engine.submit(first), rig.engine.submit(second)]);
    open();
    expect((await answers).map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    await rig.settle();
    expect(rig.rows('messages')).toBe(1);
    expect(rig.storage.alarmAt).toBe(rig.clock.now + 5 * MINUTE);
  });

  test('that commits and loses its answer is one message, replayed and sent (S6)', async () => {
    rig.dieAt('submit.committed');
    await expect(rig.submit()).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.outbound.sent).toEqual([]);
    const again = await rig.submit();
    expect(again).toMatchObject({ ok: true, deduplicated: true });
    expect(rig.rows('messages')).toBe(1);
    await rig.advance(5 * MINUTE);
    expect(rig.outbound.sent).toHaveLength(1);
    expect(rig.quotaBooks).toMatchObject({ held: 1, counted: 1 });
  });
});

describe('two requests with one key', () => {
  const booking = { to: [JO], subject: 'Your booking 4471', text: 'Confirmed.' };

  test('at once on one instance: the second is told to wait (S7)', async () => {
    const request = await rig.request({ key: 'k-2', body: booking });
    const open = rig.blobs.puts.hold();
    const a = rig.engine.submit(request);
    const b = await rig.engine.submit(request);
    open();
    expect(b).toEqual({ ok: false, code: 'request_in_progress' });
    expect(await a).toMatchObject({ ok: true, deduplicated: false });
  });

  /** Two requests that both looked before either committed, the second in an instance that has taken over. */
  async function race(other = booking): Promise<ReturnType<MailboxRig['engine']['submit']>[]> {
    const openA = rig.blobs.puts.hold();
    const a = rig.engine.submit(await rig.request({ key: 'k-2', body: booking }));
    await vi.waitFor(() => expect(rig.blobs.puts.calls).toBe(1));
    const openB = rig.blobs.puts.hold();
    const b = rig.instance().submit(await rig.request({ key: 'k-2', body: other }));
    await vi.waitFor(() => expect(rig.blobs.puts.calls).toBe(2));
    openA();
    await a;
    openB();
    await b;
    await rig.settle();
    return [a, b];
  }

  test('over a change of instance: the second finds what the first committed (S7)', async () => {
    const [a, b] = await Promise.all(await race());
    expect(a).toMatchObject({ ok: true, deduplicated: false });
    expect(b).toEqual({ ...a, deduplicated: true });
    expect(rig.rows('messages')).toBe(1);
    expect(rig.outbound.sent).toHaveLength(1);
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
    expect(rig.blobs.objects.size).toBe(1);
  });

  test('and two bodies over a change of instance: the second is a conflict without effect (S8)', async () => {
    const [a, b] = await Promise.all(await race({ ...booking, text: 'Cancelled.' }));
    if (!a?.ok) throw new Error('not accepted');
    expect(b).toEqual({
      ok: false,
      code: 'idempotency_conflict',
      details: { original_message_id: a.message.id },
    });
    expect(rig.rows('messages')).toBe(1);
    expect(rig.quotaBooks).toEqual({ held: 1, holds: 1, used: 0, counted: 1, tenant: 1 });
    expect(rig.blobs.objects.size).toBe(1);
  });
});

describe('the pointer', () => {
  test.each(['failNext', 'loseNext'] as const)(
    'whose queue fails (%s) does not fail the send (E2, E3)',
    async (how) => {
      rig.outbound.sends[how]();
      const message = await rig.send();
      expect(message.status).toBe('queued');
      const before = rig.outbound.take().length;
      expect(before).toBe(how === 'failNext' ? 0 : 1);
      await rig.advance(5 * MINUTE + SECOND);
      expect(rig.outbound.take()).toMatchObject([{ kind: 'send', message_id: message.id }]);
    },
  );
});
