import type { MessageId } from '@pmail/core/ids.ts';
import { address, platformAddress } from '@pmail/core/policy/context.fixture.ts';
import type { DomainState } from '@pmail/core/policy/types.ts';
import { checkThreadToken, mintThreadToken } from '@pmail/core/threading/token.ts';
import type { TransportFacts } from '@pmail/core/transport/choose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { BeginAnswer } from './begin-transport.ts';
import { Crash, JO, KIM, MailboxRig, MINUTE, THREAD_KEY } from './mailbox.fixture.ts';
import { accepted, facts, Run, report, retryLater, TIMEOUT } from './transport.fixture.ts';

/** The domain of From cannot carry a message when it is about to leave. */

let rig: MailboxRig;
let id: MessageId;

const OWN = 'desk@acme.example.com';
const PLATFORM = 'desk.acme@agents.example';

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO], cc: [KIM] } }));
});

interface World {
  state?: DomainState;
  platform?: Parameters<typeof platformAddress>[0];
  fallback?: boolean;
}

function broken({ state = 'failing', platform = {}, fallback = true }: World = {}): TransportFacts {
  return {
    ...facts(),
    addresses: [address({ domain: { state, transport: 'ses' } }), platformAddress(platform)],
    domain_fallback: fallback,
  };
}

/** Claims as the consumer does: with a token when one is wanted. */
async function begin(
  run: Run,
  transportFacts = broken(),
  key: typeof THREAD_KEY | null = THREAD_KEY,
): Promise<BeginAnswer> {
  const request = {
    message_id: id,
    claim_token: run.token,
    facts: transportFacts,
    last_sequence: rig.lastSequence,
  };
  const answer = rig.engine.beginTransport(request);
  if (answer.kind !== 'needs_thread_token') return answer;
  const { thread_seq } = answer;
  const token = key === null ? null : await mintThreadToken(key, rig.owner.identity_id, thread_seq);
  return rig.engine.beginTransport({ ...request, thread_token: { thread_seq, token } });
}

const pinned = (): number =>
  rig.sql.first<{ fallback_pinned: number }>('SELECT fallback_pinned FROM threads')?.fallback_pinned ?? -1;

describe('a domain that is', () => {
  test.each(['failing', 'suspended'] as const)(
    '%s: the message leaves as the platform address, by Cloudflare, and its thread stays with that',
    async (state) => {
      const answer = await begin(new Run(rig, id), broken({ state }));
      expect(answer).toMatchObject({
        kind: 'claimed',
        send: {
          provider: 'cloudflare',
          fallback: true,
          from: { address: PLATFORM, name: 'Acme Desk' },
          to: [JO],
          cc: [KIM],
        },
      });
      const message = rig.message(id);
      expect(message).toMatchObject({
        from: { address: PLATFORM, name: 'Acme Desk' },
        flags: ['sent_via_fallback'],
        provider: 'cloudflare',
        status: 'queued',
      });
      expect(pinned()).toBe(1);
      const [replyTo] = message.reply_to;
      expect(replyTo?.name).toBe('Acme Desk');
      const [, local, detail = '', domain] = /^([^+]+)\+(.+)@(.+)$/.exec(replyTo?.address ?? '') ?? [];
      expect(`${local}@${domain}`).toBe(PLATFORM);
      expect(await checkThreadToken([THREAD_KEY], rig.owner.identity_id, detail)).toMatchObject({
        kind: 'valid',
        seq: 1,
      });
      if (answer.kind === 'claimed') expect(answer.send.reply_to).toBe(replyTo?.address);
    },
  );

  test('fine while SES has stopped sending for the account falls back too', async () => {
    const paused = { ...broken({ state: 'healthy' }), ses_sending_paused: true };
    expect(await begin(new Run(rig, id), paused)).toMatchObject({ kind: 'claimed', send: { fallback: true } });
  });

  test.each(['healthy', 'degraded'] as const)('%s: the message leaves as it was composed', async (state) => {
    const before = rig.message(id);
    expect(await begin(new Run(rig, id), broken({ state }))).toMatchObject({
      kind: 'claimed',
      send: { provider: 'ses', fallback: false, from: { address: OWN }, reply_to: before.reply_to[0]?.address },
    });
    expect(rig.message(id)).toEqual({ ...before, provider: 'ses' });
    expect(pinned()).toBe(0);
  });

  test.each([
    ['without the policy', broken({ fallback: false })],
    ['on a platform domain that is failing itself', broken({ platform: { domain: { state: 'failing' } } })],
    ['when the platform address is gone', { ...broken(), addresses: [address({ domain: { state: 'failing' } })] }],
  ])('failing %s: the message fails, and nothing is called', async (_what, transportFacts) => {
    expect(await begin(new Run(rig, id), transportFacts)).toEqual({ kind: 'ended' });
    expect(rig.message(id)).toMatchObject({
      status: 'failed',
      status_reason: 'domain_failing_no_fallback',
      from: { address: OWN },
      flags: [],
    });
    expect(pinned()).toBe(0);
    expect(rig.engine.listAttempts(id)).toEqual([]);
  });

  test.each(['removing', 'removed'] as const)('%s: the message is rejected', async (state) => {
    expect(await begin(new Run(rig, id), broken({ state }))).toEqual({ kind: 'ended' });
    expect(rig.message(id)).toMatchObject({
      status: 'rejected',
      status_reason: 'sender_domain_unavailable',
      flags: [],
    });
  });
});

test('marketing never falls back', async () => {
  const ses = [address({ domain: { transport: 'ses' } }), platformAddress()];
  ({ id } = await rig.send({
    body: {
      to: [JO],
      kind: 'marketing',
      unsubscribe: { url: 'https://acme.example.com/u' },
      consent: { basis: 'opt_in', recorded_at: '2026-01-01T00:00:00Z' },
    },
    directory: { addresses: ses },
  }));
  expect(await begin(new Run(rig, id))).toEqual({ kind: 'ended' });
  expect(rig.message(id)).toMatchObject({ status: 'failed', status_reason: 'domain_failing_no_fallback', flags: [] });
});

describe('the token of the Reply-To', () => {
  test('is asked for before anything changes', () => {
    const before = rig.message(id);
    const run = new Run(rig, id);
    expect(run.begin(broken())).toEqual({ kind: 'needs_thread_token', thread_seq: 1 });
    expect(run.begin(broken())).toEqual({ kind: 'needs_thread_token', thread_seq: 1 });
    expect(rig.message(id)).toEqual(before);
    expect(rig.engine.listAttempts(id)).toEqual([]);
    expect(rig.meta(`claim:${id}`)).toBeUndefined();
  });

  test('of another thread is not taken', () => {
    const request = { message_id: id, claim_token: 'x', facts: broken(), last_sequence: rig.lastSequence };
    const other = { thread_seq: 7, token: 't07.abcdefgh' };
    expect(rig.engine.beginTransport({ ...request, thread_token: other })).toMatchObject({
      kind: 'needs_thread_token',
    });
  });

  test.each([
    ['there is no key', broken(), null],
    ['the platform domain has no tokens', broken({ platform: { domain: { reply_token: 'none' } } }), THREAD_KEY],
  ])('is left out when %s', async (_what, transportFacts, key) => {
    expect(await begin(new Run(rig, id), transportFacts, key)).toMatchObject({
      kind: 'claimed',
      send: { from: { address: PLATFORM }, reply_to: null },
    });
    expect(rig.message(id).reply_to).toEqual([]);
  });
});

describe('a message that has fallen back', () => {
  test('tells of it when it is sent', async () => {
    const run = new Run(rig, id);
    await begin(run);
    await run.record(accepted());
    expect(rig.eventData('message.sent')).toMatchObject([{ sent_via_fallback: true, provider: 'cloudflare' }]);
  });

  test('and was put off stays with the platform address, even when its domain has recovered', async () => {
    const run = new Run(rig, id);
    await begin(run);
    await run.record(retryLater('rate_limit'));
    const before = rig.message(id);
    const healthy = broken({ state: 'healthy' });
    expect(await begin(new Run(rig, id), healthy)).toMatchObject({
      kind: 'claimed',
      send: {
        provider: 'cloudflare',
        fallback: true,
        from: { address: PLATFORM },
        reply_to: before.reply_to[0]?.address,
      },
    });
    expect(rig.message(id)).toEqual(before);
  });

  test('and whose claim answer was lost gets the same claim once', async () => {
    const run = new Run(rig, id);
    const first = await begin(run);
    expect(await begin(run)).toEqual(first);
    expect(await begin(new Run(rig, id))).toEqual({ kind: 'already_claimed' });
    expect(rig.message(id).flags).toEqual(['sent_via_fallback']);
    expect(rig.engine.listAttempts(id)).toHaveLength(1);
  });

  test('and is uncertain is settled by a report about the address it was sent from', async () => {
    const run = new Run(rig, id);
    await begin(run);
    await run.record(TIMEOUT);
    await rig.engine.applyEvent(
      report(rig, 'delivered', { sender: PLATFORM, recipient: JO, provider_message_id: 'cf-1' }),
    );
    expect(rig.message(id).flags).toEqual(['sent_via_fallback', 'reconciled']);
    expect(rig.statuses(id)).toEqual({ [JO]: 'delivered', [KIM]: 'uncertain' });
  });

  test('whose instance dies before the claim is committed is as it was composed', async () => {
    rig.dieAt('claim.in_transaction');
    await expect(begin(new Run(rig, id))).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.message(id)).toMatchObject({ from: { address: OWN }, flags: [], provider: null });
    expect(pinned()).toBe(0);
    await rig.advance(MINUTE);
    expect(await begin(new Run(rig, id))).toMatchObject({ kind: 'claimed', send: { fallback: true } });
  });

  test('pins its thread: the next send of it is from the platform address', async () => {
    const run = new Run(rig, id);
    await begin(run);
    await run.record(accepted());
    const { thread_id } = rig.message(id);
    const next = await rig.send({ body: { thread_id, to: [JO] }, directory: { addresses: broken().addresses } });
    expect(next.from?.address).toBe(PLATFORM);
    expect(rig.sql.first('SELECT reply_from_address FROM threads')).toEqual({ reply_from_address: OWN });
  });
});
