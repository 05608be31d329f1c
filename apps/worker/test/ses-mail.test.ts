import { createMessageBatch } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Env } from '../src/env.ts';
import worker from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { letter, mailboxRemote, OWNER, until, waiting } from './mail.ts';
import { deliverMessage, SnsDouble, sesEnv } from './sns/world.ts';
import { addDomain, call, deploy, identity, makeKey, refusal, sql, tenant } from './support.ts';

/** Mail of a domain that sends by SES, from the request to what became of it. */

const account: Env = { ...sesEnv, PM_SES_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE', PM_SES_SECRET_ACCESS_KEY: 'secret' };
const SEND = 'https://email.eu-west-1.amazonaws.com/v2/email/outbound-emails';
const ID = '0102019ab3c4d5e6-11223344-5566-7788-99aa-bbccddeeff00-000000';

let sns: SnsDouble;
let from: IdentityId;
let owner: TenantId;
let id: MessageId;
let key: string;

const BODY = letter({ to: ['jo@example.net'], subject: 'Your booking 4471' });

beforeEach(async () => {
  sns = await SnsDouble.create();
  sns.start();
  const root = await deploy();
  ({ id: owner } = await tenant(root, 'acme'));
  const domain = await addDomain(owner, 'acme.example.com', { inbound: 'ses' });
  ({ id: from } = await identity(root, owner, 'desk', { owner: OWNER, domain_id: domain }));
  key = await makeKey(root, { level: 'tenant', tenant_id: owner });
  ({ id } = await waiting(key, from, BODY, 'k-3'));
  // Only the consumer has the account; the API of this runtime would refuse a domain that sends by it.
  await sql("UPDATE domains SET transport = 'ses' WHERE id = ?", domain);
});
afterEach(() => {
  sns.stop();
  vi.restoreAllMocks();
});

/** The queue hands the message to a consumer that has the account. */
async function consume(): Promise<void> {
  const body = { v: 1, kind: 'send', tenant_id: owner, identity_id: from, message_id: id, request_id: 'req' };
  const batch = createMessageBatch('pm-outbound', [
    { id: newId('req', Date.now()), timestamp: new Date(), attempts: 1, body },
  ]);
  await worker.queue(batch, account);
}

async function message() {
  const { stub, call } = await mailboxRemote(from);
  return stub.getMessage(call, id, { text: false, html: false }, true);
}

/** An event about the message as SES writes it, with the tag that the send carried. */
function event(type: string, more: object = {}): object {
  return {
    eventType: type,
    mail: {
      timestamp: new Date().toISOString(),
      messageId: ID,
      source: 'desk@acme.example.com',
      destination: ['jo@example.net'],
      tags: { 'pmail-message': [id] },
    },
    ...more,
  };
}

const delivery = () =>
  event('Delivery', { delivery: { recipients: ['jo@example.net'], smtpResponse: '250 2.0.0 ok' } });

async function notify(body: object): Promise<number> {
  return (await deliverMessage(await sns.notification({ Message: JSON.stringify(body) }))).status;
}

describe('a message', () => {
  test('leaves by SES, signed, and is known by the id that recipients see (R1)', async () => {
    sns.answers.set(SEND, () => Response.json({ MessageId: ID }));
    await consume();
    expect(await message()).toMatchObject({
      status: 'submitted',
      provider: 'ses',
      provider_message_id: ID,
      rfc_message_id: `${ID}@eu-west-1.amazonses.com`,
    });
    expect(sns.fetched).toEqual([SEND]);
  });

  test('is delivered when SES says so', async () => {
    sns.answers.set(SEND, () => Response.json({ MessageId: ID }));
    await consume();
    const queued = vi.spyOn(env.Q_OUTBOUND, 'send');
    expect(await notify(delivery())).toBe(200);
    expect(queued).toHaveBeenCalledTimes(1);
    expect(queued.mock.calls[0]?.[0]).toMatchObject({ kind: 'transport_event', tenant_id: owner, identity_id: from });
    await until(async () => expect((await message())?.status).toBe('delivered'));
  });

  test('whose answer was lost is found by the ids that SES reports, and by what follows', async () => {
    sns.answers.set(SEND, () => Promise.reject(new TypeError('Network connection lost.')));
    await consume();
    expect(await message()).toMatchObject({ status: 'uncertain', provider_message_id: null });
    expect(await notify(event('Send', { send: {} }))).toBe(200);
    await until(async () => expect(await message()).toMatchObject({ status: 'uncertain', provider_message_id: ID }));
    expect(await notify(delivery())).toBe(200);
    await until(async () => expect((await message())?.status).toBe('delivered'));
  });

  test('that SES refuses is rejected, and its type is told', async () => {
    sns.answers.set(SEND, () =>
      Response.json({ message: 'no' }, { status: 400, headers: { 'x-amzn-errortype': 'MessageRejected' } }),
    );
    await consume();
    expect(await message()).toMatchObject({ status: 'rejected', status_reason: 'provider_validation' });
  });
});

describe('a clock that is off (K3)', () => {
  const LATE = { type: 'InvalidSignatureException', text: 'Signature expired' };
  const EARLY = { type: 'RequestExpired', text: 'Signature not yet current' };

  /** SES by its own clock: a signature whose time is more than five minutes away is none. */
  function answerByClock(refusal: { type: string; text: string }): { signed: string[] } {
    const wall = Date.now();
    const signed: string[] = [];
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (_input, init) => {
      const stamp = new Headers(init?.headers).get('x-amz-date') ?? '';
      signed.push(stamp);
      const [, y, mo, d, h, mi, se] = /^(....)(..)(..)T(..)(..)(..)Z$/.exec(stamp) ?? [];
      const at = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${se}Z`);
      if (Math.abs(at - wall) <= 5 * 60_000) return Response.json({ MessageId: ID });
      return Response.json(
        { message: `${refusal.text}: ${stamp}` },
        { status: 403, headers: { 'x-amzn-errortype': refusal.type } },
      );
    });
    return { signed };
  }

  const skewed = async (ms: number): Promise<void> => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
    try {
      await consume();
    } finally {
      vi.useRealTimers();
    }
  };

  test.each([
    ['ten minutes behind', -10, LATE],
    ['ten minutes ahead', 10, EARLY],
  ])(
    '%s: SES refuses the signature, the message is rejected with its words, and is not sent again',
    async (_what, minutes, refusal) => {
      const { signed } = answerByClock(refusal);
      await skewed(minutes * 60_000);
      expect(signed).toHaveLength(1);
      const rejected = await message();
      expect(rejected).toMatchObject({
        status: 'rejected',
        status_reason: 'provider_validation',
        provider_message_id: null,
      });
      expect(rejected?.deliveries).toMatchObject([
        { status: 'rejected', smtp_response: expect.stringContaining(`${refusal.type}: ${refusal.text}`) as string },
      ]);
      // Neither the queue nor a clock that is right again sends it; its key goes on answering with it.
      await consume();
      expect(signed).toHaveLength(1);
      await expectReplay();
    },
  );

  test('by four minutes is no trouble', async () => {
    const { signed } = answerByClock(LATE);
    await skewed(-4 * 60_000);
    expect(signed).toHaveLength(1);
    expect(await message()).toMatchObject({ status: 'submitted', provider_message_id: ID });
  });

  async function expectReplay(): Promise<void> {
    const input = { params: { identity_id: from }, body: BODY, headers: { 'idempotency-key': 'k-3' }, status: 202 };
    expect(await call(key, 'messages.send', input)).toMatchObject({ id, deduplicated: true, status: 'queued' });
    const other = { ...input, body: { ...BODY, text: 'Another text.' } };
    const { status: _accepted, ...conflicting } = other;
    expect(await refusal(key, 'messages.send', conflicting)).toEqual({
      code: 'idempotency_conflict',
      original_message_id: id,
    });
  }
});

describe('a queue that does not take an event', () => {
  test('makes the hook fail, so that SNS sends it again', async () => {
    vi.spyOn(env.Q_OUTBOUND, 'send').mockRejectedValueOnce(new Error('the queue is away'));
    expect(await notify(delivery())).toBe(500);
  });
});

test('an event of mail that is not ours is acknowledged', async () => {
  await sql("UPDATE addresses SET address = 'other@acme.example.com' WHERE address = 'desk@acme.example.com'");
  const queued = vi.spyOn(env.Q_OUTBOUND, 'send');
  expect(await notify(delivery())).toBe(200);
  expect(await notify(event('Send', { send: {} }))).toBe(200);
  expect(queued).not.toHaveBeenCalled();
});
