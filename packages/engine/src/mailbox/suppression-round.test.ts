import type { MessageId } from '@pmail/core/ids.ts';
import type { ProviderSuppression } from '@pmail/core/transport/types.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, JO, KIM, LEE, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import type { SuppressedAnswer } from './suppression-round.ts';
import { accepted, Run, report, retryLater, SUPPRESSED, TIMEOUT } from './transport.fixture.ts';

let rig: MailboxRig;
let id: MessageId;
let run: Run;

const listed = (address: string): ProviderSuppression => ({ address, reason: 'hard_bounce', expires_at: null });

/** The refused call is recorded, and the next one asked for. */
async function refused(by: Run, next: string, ...addresses: string[]): Promise<SuppressedAnswer> {
  return rig.engine.recordSuppressed({
    message_id: id,
    claim_token: by.token,
    next_token: next,
    result: SUPPRESSED,
    suppressed: addresses.map(listed),
  });
}

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO], cc: [KIM], bcc: [LEE] } }));
  run = new Run(rig, id, 'first');
  run.claim();
});

const results = (): (string | null)[] => rig.engine.listAttempts(id).map(({ result }) => result);

describe('a refusal because of one recipient', () => {
  test('suppresses that one, and claims the next call for the others under the same claim', async () => {
    const claimed = JSON.parse(rig.meta(`claim:${id}`) ?? '') as { claimed_at: number };
    rig.clock.now += SECOND;
    const answer = await refused(run, 'second', JO);
    expect(answer).toMatchObject({ kind: 'again', send: { claim_token: 'second', to: [], cc: [KIM], bcc: [LEE] } });
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'queued', [LEE]: 'queued' });
    expect(rig.message(id).deliveries?.[0]).toMatchObject({
      smtp_code: null,
      smtp_response: 'provider: suppressed (hard_bounce)',
    });
    expect(JSON.parse(rig.meta(`claim:${id}`) ?? '')).toEqual({ token: 'second', claimed_at: claimed.claimed_at });
    expect(results()).toEqual(['suppressed', null]);
    expect(rig.eventTypes).toEqual([]);

    await new Run(rig, id, 'second').record(accepted());
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'submitted', [LEE]: 'submitted' });
    expect(rig.message(id).status).toBe('submitted');
    expect(rig.eventTypes).toEqual(['message.sent']);
    expect(rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 2, counted: 1, tenant: 1 });
  });

  test('asked about again, because the answer was lost, gives the same call once', async () => {
    const first = await refused(run, 'second', JO);
    expect(await refused(run, 'second', JO)).toEqual(first);
    expect(results()).toEqual(['suppressed', null]);
    // Somebody else gets nothing, neither by the old token nor by another.
    expect(await refused(run, 'other', JO)).toEqual({ kind: 'ended' });
    expect(new Run(rig, id, 'third').begin()).toEqual({ kind: 'already_claimed' });
    expect(run.begin()).toEqual({ kind: 'already_claimed' });
    expect(await run.record(accepted())).toEqual({ applied: false, delay_ms: null });
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'queued', [LEE]: 'queued' });
    expect(results()).toEqual(['suppressed', null]);
  });

  test('and the next call is put off: it is made again, and again without whom it was for', async () => {
    await refused(run, 'second', JO);
    await new Run(rig, id, 'second').record(retryLater('rate_limit'));
    expect(rig.message(id).status).toBe('queued');
    const again = new Run(rig, id).claim();
    expect([again.to, again.cc, again.bcc]).toEqual([[], [KIM], [LEE]]);
  });

  test('and the answer of the next call is lost: uncertain for the others alone', async () => {
    await refused(run, 'second', JO);
    await new Run(rig, id, 'second').record(TIMEOUT);
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'uncertain', [LEE]: 'uncertain' });
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', status_reason: 'transport_timeout' });
  });

  test('and nobody reports on the next call: the claim is as old as its first call', async () => {
    await rig.advance(4 * MINUTE);
    await refused(run, 'second', JO);
    await rig.advance(59 * SECOND);
    expect(rig.message(id).status).toBe('queued');
    await rig.advance(SECOND);
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'uncertain', [LEE]: 'uncertain' });
    expect(rig.message(id).status).toBe('uncertain');
    // It was only slow.
    await new Run(rig, id, 'second').record(accepted());
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'submitted', [LEE]: 'submitted' });
  });

  test('with too little left of the claim waits for another', async () => {
    await rig.advance(4 * MINUTE + 30 * SECOND);
    expect(await refused(run, 'second', JO)).toEqual({ kind: 'deferred', delay_ms: MINUTE });
    expect(rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'queued', [LEE]: 'queued' });
    expect(results()).toEqual(['suppressed']);
    expect(await refused(run, 'second', JO)).toMatchObject({ kind: 'deferred' });
    expect(rig.quotaBooks).toMatchObject({ held: 3, holds: 1 });
    const again = new Run(rig, id).claim();
    expect([again.to, again.cc, again.bcc]).toEqual([[], [KIM], [LEE]]);
  });

  test('keeps the thread for the message until the next call has ended', async () => {
    await run.record(accepted());
    const { thread_id } = rig.message(id);
    ({ id } = await rig.send({ body: { thread_id, to: [JO, KIM] } }));
    const owner = (): unknown => rig.sql.first<{ lock_owner: string }>('SELECT lock_owner FROM threads')?.lock_owner;
    new Run(rig, id, 'call 1').claim();
    await refused(new Run(rig, id, 'call 1'), 'call 2', JO);
    expect(owner()).toBe(id);
    await new Run(rig, id, 'call 2').record(accepted());
    expect(owner()).toBeNull();
  });
});

describe('a refusal because of everybody', () => {
  test('at once ends the message as suppressed, and gives the hold back', async () => {
    expect(await refused(run, 'second', JO, KIM, LEE)).toEqual({ kind: 'ended' });
    expect(rig.message(id)).toMatchObject({ status: 'suppressed', status_reason: null });
    expect(rig.eventData('message.suppressed')).toEqual([
      {
        message_id: id,
        recipients: [JO, KIM, LEE].map((address) => ({ address, reason: 'provider: suppressed (hard_bounce)' })),
      },
    ]);
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0, used: 0 });
    expect(rig.meta(`claim:${id}`)).toBeUndefined();
    expect(await refused(run, 'second', JO, KIM, LEE)).toEqual({ kind: 'ended' });
    expect(rig.eventTypes).toEqual(['message.suppressed']);
  });

  test('one after the other ends it as suppressed too', async () => {
    await refused(run, 'second', JO);
    await refused(new Run(rig, id, 'second'), 'third', KIM);
    expect(await refused(new Run(rig, id, 'third'), 'fourth', LEE)).toEqual({ kind: 'ended' });
    expect(rig.message(id).status).toBe('suppressed');
    expect(results()).toEqual(['suppressed', 'suppressed', 'suppressed']);
  });
});

describe('rounds', () => {
  const MANY = [1, 2, 3, 4, 5, 6].map((n) => `r${n}@example.net`);

  test('are three; who is left then is refused', async () => {
    ({ id } = await rig.send({ body: { to: MANY } }));
    const first = new Run(rig, id, 'call 1');
    first.claim();
    for (let round = 1; round <= 3; round++) {
      const answer = await refused(new Run(rig, id, `call ${round}`), `call ${round + 1}`, MANY[round - 1] ?? '');
      expect(answer).toMatchObject({ kind: 'again', send: { to: MANY.slice(round) } });
    }
    expect(await refused(new Run(rig, id, 'call 4'), 'call 5', MANY[3] ?? '')).toEqual({ kind: 'ended' });
    expect(Object.values(rig.statuses(id))).toEqual([
      ...['suppressed', 'suppressed', 'suppressed', 'suppressed'],
      ...['rejected', 'rejected'],
    ]);
    expect(rig.message(id)).toMatchObject({
      status: 'rejected',
      status_reason: 'recipient_suppressed_by_provider',
    });
    expect(rig.engine.listAttempts(id)).toHaveLength(4);
  });

  test('are counted anew for each claim', async () => {
    ({ id } = await rig.send({ body: { to: MANY } }));
    new Run(rig, id, 'call 1').claim();
    for (const round of [1, 2, 3]) {
      await refused(new Run(rig, id, `call ${round}`), `call ${round + 1}`, MANY[round - 1] ?? '');
    }
    await new Run(rig, id, 'call 4').record(retryLater('quota'));
    new Run(rig, id, 'call 5').claim();
    expect(await refused(new Run(rig, id, 'call 5'), 'call 6', MANY[3] ?? '')).toMatchObject({ kind: 'again' });
  });
});

describe('a refusal that comes late', () => {
  test('settles the uncertain message as refused, and nothing is called again', async () => {
    await rig.advance(6 * MINUTE);
    expect(rig.message(id).status).toBe('uncertain');
    expect(await refused(run, 'second', JO)).toEqual({ kind: 'ended' });
    expect(rig.message(id)).toMatchObject({
      status: 'rejected',
      status_reason: 'recipient_suppressed_by_provider',
    });
    expect(results()).toEqual(['suppressed']);
    expect(new Run(rig, id).begin()).toEqual({ kind: 'not_queued' });
  });

  test('about a call that nobody knows changes nothing', async () => {
    expect(await refused(new Run(rig, id, 'unknown'), 'second', JO)).toEqual({ kind: 'ended' });
    expect(rig.statuses(id)).toEqual({ [JO]: 'queued', [KIM]: 'queued', [LEE]: 'queued' });
  });

  test('for somebody a report has ended already leaves them as they are', async () => {
    await refused(run, 'second', JO);
    await new Run(rig, id, 'second').record(accepted());
    await rig.engine.applyEvent(report(rig, 'bounced', { recipient: KIM }));
    expect(await refused(run, 'third', KIM)).toEqual({ kind: 'ended' });
    expect(rig.statuses(id)).toMatchObject({ [KIM]: 'bounced' });
  });
});

describe('the instance dies', () => {
  test('inside the step: nothing has happened, and it is done again', async () => {
    rig.dieAt('round.in_transaction');
    await expect(refused(run, 'second', JO)).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.statuses(id)).toMatchObject({ [JO]: 'queued' });
    expect(results()).toEqual([null]);
    expect(await refused(run, 'second', JO)).toMatchObject({ kind: 'again' });
  });

  test('after it: the call that was claimed is given to the one who asked', async () => {
    rig.dieAt('round.committed');
    await expect(refused(run, 'second', JO)).rejects.toThrow(Crash);
    rig.restart();
    expect(await refused(run, 'second', JO)).toMatchObject({ kind: 'again', send: { claim_token: 'second' } });
    expect(results()).toEqual(['suppressed', null]);
  });
});
