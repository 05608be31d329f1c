import type { MessageId } from '@pmail/core/ids.ts';
import { platformAddress } from '@pmail/core/policy/context.fixture.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, DAY, HOUR, JO, KIM, LEE, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, attempt, facts, Run, report, retryLater } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [{ address: JO, name: 'Jo' }], cc: [KIM], bcc: [LEE] } }));
});

describe('a claim', () => {
  test('tells its holder what to send, and leaves a trace before anyone dials', () => {
    const run = new Run(rig, id);
    expect(run.claim()).toEqual({
      message_id: id,
      claim_token: run.token,
      provider: 'cloudflare',
      r2_key: rig.engine.rawLocation(id, false),
      mime_sha256: rig.sql.first<{ sha: string }>('SELECT raw_sha256 AS sha FROM messages')?.sha,
      from: { address: 'desk@acme.example.com', name: 'Acme Desk' },
      reply_to: 'desk+t01.9rq4y0s9@acme.example.com',
      subject: 'Your booking',
      to: [JO],
      cc: [KIM],
      bcc: [LEE],
      fallback: false,
    });
    expect(rig.engine.listAttempts(id)).toEqual([
      {
        message_rowid: 1,
        n: 1,
        token: run.token,
        provider: 'cloudflare',
        claimed_at: rig.clock.now,
        ended_at: null,
        result: null,
        detail_json: null,
        late: 0,
      },
    ]);
    expect(rig.message(id).provider).toBe('cloudflare');
  });

  test('is given to one of two at once (C1)', () => {
    const [a, b] = [new Run(rig, id), new Run(rig, id)];
    expect(a.begin().kind).toBe('claimed');
    expect(b.begin()).toEqual({ kind: 'already_claimed' });
    expect(rig.engine.listAttempts(id)).toHaveLength(1);
  });

  test('stands over a change of instance (C1)', () => {
    new Run(rig, id).claim();
    rig.restart();
    expect(new Run(rig, id).begin()).toEqual({ kind: 'already_claimed' });
  });

  test('is not given after the end (C2)', async () => {
    await attempt(rig, id, accepted());
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
  });

  test('is given to an older job that comes after a newer one, whose wait a copy of a pointer may so shorten (C3)', async () => {
    const { delay_ms } = await attempt(rig, id, retryLater('quota'));
    expect(delay_ms).toBe(MINUTE);
    const called = rig.clock.now;
    // The wait is the delay of the new pointer and nothing else: a pointer of before does not know of it.
    rig.clock.now += 1;
    const older = new Run(rig, id);
    expect(older.begin().kind).toBe('claimed');
    const newer = new Run(rig, id);
    expect(newer.begin()).toEqual({ kind: 'already_claimed' });
    await older.record(accepted());
    rig.clock.now += MINUTE;
    expect(newer.begin()).toEqual({ kind: 'not_queued' });
    expect(rig.engine.listAttempts(id)).toMatchObject([
      { n: 1, claimed_at: called, result: 'retry_later' },
      { n: 2, token: older.token, claimed_at: called + 1, result: 'accepted' },
    ]);
  });

  test('of a wait that was shortened is one step of the back-off like any other, and no call is made twice (C3)', async () => {
    await attempt(rig, id, retryLater('quota'));
    const { delay_ms } = await attempt(rig, id, retryLater('quota'));
    expect(delay_ms).toBe(2 * MINUTE);
    expect(JSON.parse(rig.meta(`backoff:${id}`) ?? '')).toMatchObject({ n: 2 });
    expect(rig.engine.listAttempts(id)).toHaveLength(2);
  });

  test('is given once more to the same run, whose answer was lost (C4)', () => {
    const run = new Run(rig, id);
    const first = run.begin();
    rig.clock.now += MINUTE;
    expect(run.begin()).toEqual(first);
    expect(rig.engine.listAttempts(id)).toHaveLength(1);
    expect(rig.meta(`claim:${id}`)).toBe(JSON.stringify({ token: run.token, claimed_at: rig.clock.now - MINUTE }));
  });

  test('is not given to the same run any more once it is stale (C4, C6)', () => {
    const run = new Run(rig, id);
    run.claim();
    rig.skip(5 * MINUTE);
    expect(run.begin()).toEqual({ kind: 'uncertain' });
    expect(rig.message(id).status).toBe('uncertain');
  });

  test('is given to nobody for a message that is not here', () => {
    expect(new Run(rig, 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T').begin()).toEqual({ kind: 'not_queued' });
  });

  test('that cannot commit is no claim (C7)', () => {
    rig.dieAt('claim.in_transaction');
    expect(() => new Run(rig, id).begin()).toThrow(Crash);
    rig.restart();
    expect(rig.engine.listAttempts(id)).toEqual([]);
    expect(rig.meta(`claim:${id}`)).toBeUndefined();
    expect(rig.message(id).provider).toBeNull();
    expect(new Run(rig, id).begin().kind).toBe('claimed');
  });

  test('is not needed for a message whose last recipient a report has ended (V3)', async () => {
    await attempt(rig, id, accepted({ deferred: [KIM] }));
    await rig.engine.applyEvent(report(rig, 'bounced', { recipient: KIM }));
    expect(new Run(rig, id).begin()).toEqual({ kind: 'ended' });
    expect(rig.engine.listAttempts(id)).toHaveLength(1);
    expect(rig.eventTypes.filter((type) => type === 'message.sent')).toHaveLength(1);
    await rig.advance(MINUTE);
    expect(rig.engine.sendState(id)).toBe('ended');
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0 });
  });
});

describe('a claim whose holder does not report', () => {
  test('holds the message for five minutes (C5)', () => {
    new Run(rig, id).claim();
    rig.clock.now += 5 * MINUTE - 1;
    expect(new Run(rig, id).begin()).toEqual({ kind: 'already_claimed' });
    expect(rig.message(id).status).toBe('queued');
  });

  test.each(['the alarm', 'another run'])('makes the message uncertain after that, found by %s (C5)', async (who) => {
    new Run(rig, id).claim();
    if (who === 'the alarm') await rig.advance(5 * MINUTE);
    else {
      rig.skip(5 * MINUTE);
      expect(new Run(rig, id).begin()).toEqual({ kind: 'uncertain' });
    }
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost' });
    expect(rig.statuses(id)).toEqual({ [JO]: 'uncertain', [KIM]: 'uncertain', [LEE]: 'uncertain' });
    expect(rig.eventData('message.uncertain')).toEqual([
      { message_id: id, reason: 'transport_connection_lost', fix: expect.stringContaining('resolve') as string },
    ]);
    rig.outbound.take();
    await rig.advance(2 * MINUTE);
    await rig.engine.poke();
    await rig.advance(DAY);
    expect(rig.quotaBooks).toMatchObject({ held: 0, used: 0, counted: 1 });
    expect(rig.outbound.sent).toEqual([]);
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
  });

  test('has used its token up: the same run asking late gets nothing (C6)', async () => {
    const run = new Run(rig, id);
    run.claim();
    await rig.advance(5 * MINUTE);
    expect(run.begin()).toEqual({ kind: 'not_queued' });
  });

  test('does not take a message along that ended in time', async () => {
    await attempt(rig, id, accepted());
    await rig.advance(HOUR);
    expect(rig.message(id).status).toBe('submitted');
  });

  test('ends alone: other claims live on, and the alarm stands at the next', async () => {
    new Run(rig, id).claim();
    await rig.advance(2 * MINUTE);
    const other = await rig.send();
    new Run(rig, other.id).claim();
    await rig.advance(3 * MINUTE);
    expect([rig.message(id).status, rig.message(other.id).status]).toEqual(['uncertain', 'queued']);
    await rig.advance(2 * MINUTE);
    expect(rig.message(other.id).status).toBe('uncertain');
  });
});

describe('a token that was used up', () => {
  test('gives no claim after its own outcome', async () => {
    const run = new Run(rig, id);
    run.claim();
    await run.record(retryLater('rate_limit'));
    expect(run.begin()).toEqual({ kind: 'not_queued' });
    expect(new Run(rig, id).begin().kind).toBe('claimed');
  });
});

describe('the domain at the moment of leaving (C9)', () => {
  test.each([
    ['pending', { state: 'pending' } as const],
    ['verifying', { state: 'verifying' } as const],
  ])('%s: nothing leaves, no claim is taken, and it is tried again', (_state, domain) => {
    expect(new Run(rig, id).begin(facts(domain))).toEqual({ kind: 'deferred', delay_ms: MINUTE });
    expect(new Run(rig, id).begin(facts(domain))).toEqual({ kind: 'deferred', delay_ms: 2 * MINUTE });
    expect(rig.engine.listAttempts(id)).toEqual([]);
    expect(rig.message(id).status).toBe('queued');
    expect(new Run(rig, id).begin().kind).toBe('claimed');
  });

  test('pending for a day: it fails, and gives its hold back', async () => {
    let answer = new Run(rig, id).begin(facts({ state: 'pending' }));
    for (let i = 0; answer.kind === 'deferred' && i < 100; i++) {
      await rig.advance(answer.delay_ms);
      answer = new Run(rig, id).begin(facts({ state: 'pending' }));
    }
    expect(answer).toEqual({ kind: 'ended' });
    expect(rig.clock.now).toBeLessThanOrEqual(Date.parse(rig.message(id).received_at) + DAY);
    expect(rig.message(id)).toMatchObject({ status: 'failed', status_reason: 'quota_exhausted' });
    expect(rig.eventData('message.failed')).toEqual([{ message_id: id, reason: 'quota_exhausted' }]);
    expect(rig.engine.listAttempts(id)).toEqual([]);
    await rig.advance(MINUTE);
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0, used: 0, counted: 1 });
  });

  test.each([
    ['failing', 'failed', 'domain_failing_no_fallback', 'message.failed'],
    ['suspended', 'failed', 'domain_failing_no_fallback', 'message.failed'],
    ['removing', 'rejected', 'sender_domain_unavailable', 'message.rejected'],
    ['removed', 'rejected', 'sender_domain_unavailable', 'message.rejected'],
  ] as const)('%s: it ends %s without a call', async (state, status, reason, event) => {
    expect(new Run(rig, id).begin(facts({ state }))).toEqual({ kind: 'ended' });
    expect(rig.message(id)).toMatchObject({ status, status_reason: reason });
    expect(rig.statuses(id)).toEqual({ [JO]: status, [KIM]: status, [LEE]: status });
    expect(rig.eventData(event)).toEqual([expect.objectContaining({ message_id: id, reason })]);
    expect(rig.engine.listAttempts(id)).toEqual([]);
    await rig.advance(MINUTE);
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0, used: 0, counted: 1 });
  });

  test('gone with its address: rejected without a call', () => {
    const other = { ...facts(), addresses: [platformAddress()] };
    expect(new Run(rig, id).begin(other)).toEqual({ kind: 'ended' });
    expect(rig.message(id)).toMatchObject({ status: 'rejected', status_reason: 'sender_domain_unavailable' });
  });

  test('moved to another transport: the present one counts', () => {
    expect(new Run(rig, id).claim(facts({ transport: 'ses' })).provider).toBe('ses');
  });
});
