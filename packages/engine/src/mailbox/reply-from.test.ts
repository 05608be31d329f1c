import { detailOf, withoutDetail } from '@pmail/core/address/address.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { address, platformAddress } from '@pmail/core/policy/context.fixture.ts';
import type { AddressFacts } from '@pmail/core/policy/types.ts';
import { checkThreadToken } from '@pmail/core/threading/token.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { copyOf, forward, headerOf, refusalOf, reply, replyAll } from './answers.fixture.ts';
import { arrive, DESK } from './inbound.fixture.ts';
import { MailboxRig, type SendOptions, THREAD_KEY } from './mailbox.fixture.ts';

/** From which address an answer comes, and where answers to it go. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

const PLATFORM = 'desk.acme@agents.example';
const SALES = 'sales@acme.example.com';
const OLD = 'old@acme.example.com';

function addresses(...others: AddressFacts[]): SendOptions {
  return { directory: { addresses: [address(), platformAddress(), ...others] } };
}

const sales = (status: AddressFacts['status'] = 'active') => address({ address: SALES, role: 'alias', status });
const old = (status: AddressFacts['status'] = 'retiring') => address({ address: OLD, role: 'alias', status });

/** Mail from Jo to one of our addresses. */
async function written(to: string): Promise<MessageId> {
  const own_addresses = [DESK, PLATFORM, SALES, OLD];
  const { message_id } = await arrive(rig, {
    request: { envelope_to: to, own_addresses },
    parsed: { to: [{ address: to, name: '' }] },
  });
  return message_id;
}

/** From of a send, which frees its thread again. */
async function fromOf(options: SendOptions): Promise<string | undefined> {
  const { id, from } = await rig.send(options);
  expect((await copyOf(rig, id)).from).toEqual({ address: from?.address, name: 'Acme Desk' });
  await rig.engine.cancel(id);
  return from?.address;
}

describe('an answer', () => {
  test.each([
    ['reply', reply],
    ['reply_all', replyAll],
    ['forward', forward],
  ])('(%s) comes from the address that was written to', async (_operation, answer) => {
    expect(await fromOf(answer(await written(SALES), addresses(sales())))).toBe(SALES);
    expect(await fromOf(answer(await written(PLATFORM)))).toBe(PLATFORM);
    expect(await fromOf(answer(await written(DESK)))).toBe(DESK);
  });

  test.each([
    ['reply', reply],
    ['reply_all', replyAll],
    ['forward', forward],
  ])('(%s) takes another From that is asked for (R22)', async (_operation, answer) => {
    const target = await written(DESK);
    const options = { ...addresses(sales()), body: { from_address: 'Sales@Acme.Example.com' } };
    expect(await fromOf(answer(target, options))).toBe(SALES);
    expect(await fromOf(answer(target, { ...options, body: { from_address: PLATFORM } }))).toBe(PLATFORM);
  });

  test('goes on from an address that is retiring, in the thread that uses it', async () => {
    expect(await fromOf(reply(await written(OLD), addresses(old())))).toBe(OLD);
  });

  test('moves to the primary when that address is gone', async () => {
    expect(await fromOf(reply(await written(OLD), addresses(old('retired'))))).toBe(DESK);
    expect(await fromOf(reply(await written(SALES)))).toBe(DESK);
  });

  test('to a blind copy comes from the primary, whichever address it went to', async () => {
    const { message_id } = await arrive(rig, {
      request: { envelope_to: PLATFORM },
      parsed: { to: [{ address: 'kim@example.net', name: '' }] },
    });
    expect(await fromOf(reply(message_id))).toBe(DESK);
  });

  test('stays on the platform address while the thread is pinned to it', async () => {
    const target = await written(SALES);
    rig.sql.run('UPDATE threads SET fallback_pinned = 1');
    expect(await fromOf(reply(target, addresses(sales())))).toBe(PLATFORM);
    const thread_id = rig.message(target).thread_id;
    expect(await fromOf({ ...addresses(sales()), body: { thread_id } })).toBe(PLATFORM);
    expect(await fromOf(reply(target, { ...addresses(sales()), body: { from_address: SALES } }))).toBe(SALES);
  });

  test('goes back to its own address after 72 quiet hours, and stays there', async () => {
    const target = await written(SALES);
    rig.sql.run('UPDATE threads SET fallback_pinned = 1');
    rig.clock.now += LIMITS.fallback_quiet_ms_min + 1;
    expect(await fromOf(reply(target, addresses(sales())))).toBe(SALES);
    expect(await fromOf(reply(target, addresses(sales())))).toBe(SALES);
    expect(rig.sql.all('SELECT fallback_pinned FROM threads')).toEqual([{ fallback_pinned: 0 }]);
  });
});

describe('a From that is asked for', () => {
  test.each<[string, AddressFacts[], string, string]>([
    ['retired', [old('retired')], OLD, 'invalid_request'],
    ['retiring and not used in the thread', [old()], OLD, 'invalid_request'],
    ['unknown', [], 'other@acme.example.com', 'invalid_request'],
    ['no address', [], 'desk', 'invalid_request'],
    ['pending', [old('pending')], OLD, 'domain_not_ready'],
    [
      'on a domain that only receives',
      [address({ address: SALES, role: 'alias', domain: { sending: false } })],
      SALES,
      'invalid_request',
    ],
  ])('is refused when it is %s', async (_what, others, from_address, code) => {
    const target = await written(DESK);
    const thread_id = rig.message(target).thread_id;
    for (const options of [reply(target), replyAll(target), forward(target), { body: { thread_id } }]) {
      const answer = await rig.submit({ ...options, ...addresses(...others), body: { ...options.body, from_address } });
      expect(refusalOf(answer)).toEqual({ code, paths: code === 'invalid_request' ? ['from_address'] : [] });
    }
    expect(rig.rows('messages')).toBe(1);
  });

  test('may be retiring where the thread answers from it, or has been sent from it before', async () => {
    const target = await written(OLD);
    expect(await fromOf(reply(target, { ...addresses(old()), body: { from_address: OLD } }))).toBe(OLD);
    // Since then the thread answers from another address.
    await arrive(rig, {
      request: { envelope_to: DESK },
      parsed: { rfc_message_id: 'again@example.net', in_reply_to: [rig.message(target).rfc_message_id ?? ''] },
    });
    expect(rig.sql.all('SELECT reply_from_address FROM threads')).toEqual([{ reply_from_address: DESK }]);
    expect(await fromOf(reply(target, addresses(old())))).toBe(DESK);
    expect(await fromOf(reply(target, { ...addresses(old()), body: { from_address: OLD } }))).toBe(OLD);
    const thread_id = rig.message(target).thread_id;
    expect(await fromOf({ ...addresses(old()), body: { thread_id, from_address: OLD } })).toBe(OLD);
    expect(refusalOf(await rig.submit({ ...addresses(old()), body: { from_address: OLD } }))).toEqual({
      code: 'invalid_request',
      paths: ['from_address'],
    });
  });
});

describe('a send into a thread', () => {
  test('comes from the address the thread answers from, else from the primary', async () => {
    const of = async (target: MessageId) => ({ thread_id: rig.message(target).thread_id });
    expect(await fromOf({ ...addresses(sales()), body: await of(await written(SALES)) })).toBe(SALES);
    expect(await fromOf({ ...addresses(old('retired')), body: await of(await written(OLD)) })).toBe(DESK);
  });

  test('that began with another From goes on with it', async () => {
    const first = await rig.send({ ...addresses(sales()), body: { from_address: SALES } });
    await rig.engine.cancel(first.id);
    expect(await fromOf({ ...addresses(sales()), body: { thread_id: first.thread_id } })).toBe(SALES);
  });
});

describe('the Reply-To', () => {
  const seqOf = (id: MessageId): number =>
    rig.sql.first<{ thread_seq: number }>('SELECT thread_seq FROM messages WHERE id = ?', id)?.thread_seq ?? 0;

  test('carries the token of the thread behind the From address, and answers to it come back there', async () => {
    const target = await written(SALES);
    const { id } = await rig.send(reply(target, addresses(sales())));
    const [replyTo] = rig.message(id).reply_to;
    expect((await copyOf(rig, id)).reply_to).toEqual([replyTo]);
    expect(replyTo?.name).toBe('Acme Desk');
    expect(withoutDetail(replyTo?.address ?? '')).toBe(SALES);
    const token = await checkThreadToken([THREAD_KEY], rig.owner.identity_id, detailOf(replyTo?.address ?? '') ?? '');
    expect(token).toEqual({ kind: 'valid', seq: seqOf(id), kid: THREAD_KEY.kid });
    const answer = await arrive(rig, {
      request: { envelope_to: replyTo?.address ?? '', token, own_addresses: [DESK, SALES] },
      parsed: { to: [{ address: replyTo?.address ?? '', name: '' }] },
    });
    expect(answer.thread_id).toBe(rig.message(id).thread_id);
    expect(rig.message(answer.message_id)).toMatchObject({ flags: [], trust: { flags: [] } });
  });

  test('of a new thread names the thread that the message begins', async () => {
    const message = await rig.send();
    const detail = detailOf(message.reply_to[0]?.address ?? '') ?? '';
    expect(await checkThreadToken([THREAD_KEY], rig.owner.identity_id, detail)).toMatchObject({
      kind: 'valid',
      seq: seqOf(message.id),
    });
  });

  test.each([
    [
      'the domain keeps no sub-addresses',
      { ...addresses(), directory: { addresses: [address({ domain: { reply_token: 'none' } })] } },
    ],
    ['there is no key', { keys: { thread: null, link: null } }],
  ] satisfies [string, SendOptions][])('is left out where %s', async (_what, options) => {
    for (const one of [options, { ...reply(await written(DESK)), ...options }]) {
      const message = await rig.send(one);
      expect(message.reply_to).toEqual([]);
      expect(headerOf(rig, message.id, 'Reply-To')).toBeUndefined();
    }
  });

  test('follows a From that was asked for, and the domain of that address', async () => {
    const none = address({ address: SALES, role: 'alias', domain: { name: 'acme.example.com', reply_token: 'none' } });
    const target = await written(DESK);
    const message = await rig.send(reply(target, { ...addresses(none), body: { from_address: SALES } }));
    expect(message.reply_to).toEqual([]);
    await rig.engine.cancel(message.id);
    const other = await rig.send(reply(target, { ...addresses(none), body: { from_address: PLATFORM } }));
    expect(other.reply_to[0]?.address).toMatch(/^desk\.acme\+t0[0-9a-z]+\.[0-9a-z]{8}@agents\.example$/);
  });
});
