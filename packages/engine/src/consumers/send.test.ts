import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, DAY, JO, KIM, MINUTE, SECOND } from '../mailbox/mailbox.fixture.ts';
import { accepted, REJECTED, retryLater, TIMEOUT } from '../mailbox/transport.fixture.ts';
import { consumeSend } from './send.ts';
import { Service, type TransportDouble } from './service.fixture.ts';

let service: Service;
let cloudflare: TransportDouble;
let id: MessageId;

const ACK = { kind: 'ack' };

beforeEach(async () => {
  service = await Service.create();
  ({ cloudflare } = service.transports);
  ({ id } = await service.send({ to: [JO], cc: [KIM] }));
  service.takeSends();
});

const status = (): string => service.rig.message(id).status;

/** The queue delivers the job again and again; nothing more is called. */
async function expectNoMoreCalls(calls: number): Promise<void> {
  for (let i = 0; i < 3; i++) expect(await service.consume(id)).toEqual(ACK);
  await service.rig.advance(DAY);
  for (const { id: again } of service.takeSends()) await service.consume(again);
  expect(cloudflare.calls).toHaveLength(calls);
}

describe('a pointer', () => {
  test('becomes one transport call with the stored bytes, and its outcome (I6)', async () => {
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('submitted');
    expect(service.rig.message(id).provider_message_id).toBe('cloudflare 1');
    const [call] = cloudflare.calls;
    expect(call).toMatchObject({
      deadline_ms: 30 * SECOND,
      message: {
        message_id: id,
        from: { address: service.address, name: 'desk' },
        to: [JO],
        cc: [KIM],
        bcc: [],
        subject: 'Your booking',
        journal_bcc: null,
      },
    });
    const stored = service.rig.blobs.objects.get(service.rig.engine.rawLocation(id, false) ?? '');
    expect(call?.message.mime).toEqual(stored?.bytes);
    expect(service.rig.sql.first('SELECT raw_sha256 AS sha FROM messages')).toEqual({
      sha: await sha256Hex(Uint8Array.from(call?.message.mime ?? [])),
    });
    expect(service.takeSends()).toEqual([]);
  });

  test('delivered many times, at once and later, is one call (C1, C2)', async () => {
    const at = await Promise.all([1, 2, 3, 4].map(() => service.consume(id)));
    expect(at).toEqual([ACK, ACK, ACK, ACK]);
    await expectNoMoreCalls(1);
  });

  test('of a message that is gone is acknowledged', async () => {
    expect(await service.consume('msg_01JD9Q3V7M8X2C4N6B5K1R0E9T')).toEqual(ACK);
    expect(service.calls).toEqual({});
  });

  test('of an identity that is not there, or not of that tenant, is acknowledged and counted', async () => {
    const world = service.world();
    const foreign = { ...service.job(id), tenant_id: 'ten_01JD9Q3V7M8X2C4N6B5K1R0E9T' as const };
    expect(await consumeSend(world, foreign)).toEqual(ACK);
    const nobody = { ...service.job(id), identity_id: 'idn_01JD9Q3V7M8X2C4N6B5K1R0E9T' as const };
    expect(await consumeSend(world, nobody)).toEqual(ACK);
    expect(service.counts).toEqual(['outbound_identity_gone_total', 'outbound_identity_gone_total']);
    expect(status()).toBe('queued');
  });

  test('that the directory cannot answer for is left to the queue, and nothing has happened (P6)', async () => {
    service.queries.failNext();
    await expect(service.consume(id)).rejects.toThrow();
    expect(service.rig.engine.listAttempts(id)).toEqual([]);
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('submitted');
  });
});

describe('a key whose mail the provider refused', () => {
  test('replays what was accepted; the message says why; a new key sends anew', async () => {
    const body = { to: [JO], subject: 'Your booking 4471', text: 'Confirmed.' };
    const first = await service.send(body, 'k-3');
    cloudflare.answers.push(REJECTED);
    await service.consume(first.id);
    const again = await service.send(body, 'k-3');
    expect(again).toEqual(first);
    expect(service.rig.message(first.id)).toMatchObject({
      status: 'rejected',
      status_reason: 'provider_validation',
      provider: 'cloudflare',
    });
    cloudflare.answers.push(accepted({ provider_message_id: '0101019ab3c4-ok' }));
    const fixed = await service.send({ ...body, text: 'Fixed.' }, 'k-4');
    await service.consume(fixed.id);
    expect(service.rig.message(fixed.id).provider_message_id).toBe('0101019ab3c4-ok');
    for (const { id: pointer } of service.takeSends()) await service.consume(pointer);
    expect(cloudflare.calls).toHaveLength(2);
  });
});

describe('a sender that may not send any more (C9)', () => {
  test.each([
    ['identities', 'paused', 'identity_paused'],
    ['identities', 'deleting', 'identity_deleted'],
    ['identities', 'deleted', 'identity_deleted'],
    ['tenants', 'suspended', 'tenant_suspended'],
    ['tenants', 'erasing', 'tenant_suspended'],
  ] as const)(
    '%s %s: the message is canceled, with an audit entry, and nothing is called',
    async (table, value, reason) => {
      await service.set(table, 'status', value);
      expect(await service.consume(id)).toEqual(ACK);
      expect(status()).toBe('canceled');
      expect(service.calls).toEqual({});
      expect(service.rig.eventTypes).toEqual(['message.canceled']);
      const entries = await service.audit('message.cancel');
      expect(entries).toMatchObject([{ tenant_id: service.tenant.id, actor_key_id: null, target_id: id }]);
      expect(JSON.parse(String(entries[0]?.['details_json']))).toEqual({ reason, actor: 'system' });
      expect(service.rig.quotaBooks).toEqual({ held: 0, holds: 0, used: 0, counted: 0, tenant: 0 });
    },
  );

  test('suspended comes before paused', async () => {
    await service.set('tenants', 'status', 'suspended');
    await service.set('identities', 'status', 'paused');
    await service.consume(id);
    const [entry] = await service.audit('message.cancel');
    expect(entry?.['details_json']).toContain('tenant_suspended');
  });

  test('and a run that dies before its audit entry: the next one writes it, once', async () => {
    await service.set('identities', 'status', 'paused');
    service.queries.failNext(1, 1);
    await expect(service.consume(id)).rejects.toThrow();
    expect(status()).toBe('canceled');
    expect(await service.audit('message.cancel')).toEqual([]);
    for (let i = 0; i < 3; i++) await service.consume(id);
    expect(await service.audit('message.cancel')).toHaveLength(1);
    expect(service.rig.eventTypes).toEqual(['message.canceled']);
  });

  test('after part of the message has left: the rest is put off', async () => {
    cloudflare.answers.push(accepted({ deferred: [KIM] }));
    await service.consume(id);
    service.takeSends();
    await service.set('identities', 'status', 'paused');
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.takeSends()).toEqual([{ id, delay_ms: 2 * MINUTE }]);
    expect(await service.audit('message.cancel')).toEqual([]);
    await service.set('identities', 'status', 'active');
    await service.consume(id);
    expect(service.rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'submitted' });
  });

  test('while another run has the claim: that one goes on', async () => {
    service.records.failNext(2);
    await expect(service.consume(id)).rejects.toThrow();
    await service.set('identities', 'status', 'paused');
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('queued');
  });
});

describe('the answer of a claim is lost', () => {
  test('once: the run asks again with its token, and makes the one call (C4)', async () => {
    service.begins.loseNext();
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('submitted');
    expect(service.rig.engine.listAttempts(id)).toHaveLength(1);
    await expectNoMoreCalls(1);
  });

  test('because it was never asked: the run asks again', async () => {
    service.begins.failNext();
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('submitted');
  });

  test('twice: nobody can tell, so nobody calls, and the message becomes uncertain (C4)', async () => {
    service.begins.loseNext(2);
    await expect(service.consume(id)).rejects.toThrow();
    expect(await service.consume(id)).toEqual(ACK);
    await service.rig.advance(5 * MINUTE);
    expect(status()).toBe('uncertain');
    await expectNoMoreCalls(0);
  });
});

describe('the answer of a record is lost', () => {
  test('once: it is made again and changes nothing (O2)', async () => {
    service.records.loseNext();
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('submitted');
    expect(service.rig.quotaBooks.used).toBe(2);
    expect(service.rig.eventTypes).toEqual(['message.sent']);
    await expectNoMoreCalls(1);
  });

  test('twice: the job comes again and finds it done (O4)', async () => {
    service.records.loseNext(2);
    await expect(service.consume(id)).rejects.toThrow();
    expect(status()).toBe('submitted');
    await expectNoMoreCalls(1);
  });

  test('and nothing was recorded: the message becomes uncertain, and is not sent again (O1, O3)', async () => {
    service.records.failNext(2);
    await expect(service.consume(id)).rejects.toThrow();
    await service.rig.advance(5 * MINUTE);
    expect(status()).toBe('uncertain');
    await expectNoMoreCalls(1);
  });

  test('of a message that was put off: it is queued again all the same', async () => {
    cloudflare.answers.push(retryLater('quota'));
    service.records.loseNext();
    expect(await service.consume(id)).toEqual(ACK);
    const [again] = service.takeSends();
    expect(again?.id).toBe(id);
    expect(again?.delay_ms).toBeGreaterThanOrEqual(MINUTE);
  });
});

describe('a run that dies', () => {
  test.each([
    ['consume.start', 0, 'submitted'],
    ['consume.scope_read', 0, 'submitted'],
    ['consume.claimed', 0, 'uncertain'],
    ['consume.message_read', 0, 'uncertain'],
    ['consume.transport_done', 1, 'uncertain'],
    ['consume.recorded', 1, 'submitted'],
  ] as const)(
    'at %s has made %i calls, and the message ends %s after one at the most (C5, C8, T9)',
    async (mark, calls, end) => {
      service.dieAt(mark);
      await expect(service.consume(id)).rejects.toThrow(Crash);
      expect(cloudflare.calls).toHaveLength(calls);
      expect(await service.consume(id)).toEqual(ACK);
      await service.rig.advance(6 * MINUTE);
      expect(status()).toBe(end);
      await expectNoMoreCalls(end === 'submitted' ? 1 : calls);
    },
  );

  test('of a batch at its third message gives back the rest, and each is called once (C8)', async () => {
    const ids = [id];
    for (let i = 0; i < 9; i++) ids.push((await service.send()).id);
    service.dieAt('consume.start', 4);
    const acked: MessageId[] = [];
    for (const one of ids) {
      const disposition = await service.consume(one).catch(() => null);
      if (disposition === null) break;
      acked.push(one);
    }
    expect(acked).toHaveLength(3);
    for (const one of ids) await service.consume(one);
    expect(cloudflare.calls.map(({ message }) => message.message_id)).toEqual(ids);
  });
});

describe('a message that was put off', () => {
  test('is queued anew with its delay, and the old pointer is done', async () => {
    cloudflare.answers.push(retryLater('rate_limit'), retryLater('rate_limit'));
    for (const delay_ms of [10 * SECOND, 20 * SECOND]) {
      expect(await service.consume(id)).toEqual(ACK);
      expect(service.takeSends()).toEqual([{ id, delay_ms }]);
      await service.rig.advance(delay_ms);
    }
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('submitted');
    await expectNoMoreCalls(3);
  });

  test('and cannot be queued is brought back by the alarm (E2)', async () => {
    cloudflare.answers.push(retryLater('quota'));
    service.rig.outbound.sends.failNext();
    await expect(service.consume(id)).rejects.toThrow();
    expect(service.takeSends()).toEqual([]);
    await service.rig.advance(6 * MINUTE);
    expect(service.takeSends()).toEqual([{ id, delay_ms: 0 }]);
  });

  test('by its domain is queued anew, and nothing is called', async () => {
    await service.set('domains', 'state', 'verifying');
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.takeSends()).toEqual([{ id, delay_ms: MINUTE }]);
    await service.set('domains', 'state', 'healthy');
    await service.consume(id);
    expect(status()).toBe('submitted');
    expect(cloudflare.calls).toHaveLength(1);
  });
});

describe('before the call', () => {
  const key = (): string => service.rig.engine.rawLocation(id, false) ?? '';

  test.each([
    ['missing', () => void service.rig.blobs.objects.delete(key())],
    ['different', () => void service.rig.blobs.objects.set(key(), { bytes: new Uint8Array(9), metadata: {} })],
    ['unreadable', () => service.rig.blobs.gets.failNext()],
  ])('the stored message is %s: nothing is called, and it is tried again (T10)', async (_what, spoil) => {
    const good = service.rig.blobs.objects.get(key());
    spoil();
    expect(await service.consume(id)).toEqual(ACK);
    expect(cloudflare.calls).toEqual([]);
    expect(status()).toBe('queued');
    expect(service.takeSends()).toEqual([{ id, delay_ms: MINUTE }]);
    if (good !== undefined) service.rig.blobs.objects.set(key(), good);
    await service.consume(id);
    expect(status()).toBe('submitted');
  });

  test('the stored message never comes back: it fails after a day (T10, P5)', async () => {
    service.rig.blobs.objects.clear();
    for (let i = 0; i < 100 && status() === 'queued'; i++) {
      await service.consume(id);
      await service.rig.advance(service.takeSends()[0]?.delay_ms ?? 0);
    }
    expect(service.rig.message(id)).toMatchObject({ status: 'failed', status_reason: 'quota_exhausted' });
    expect(cloudflare.calls).toEqual([]);
  });

  test('there is no such transport here: it is tried again', async () => {
    await service.set('domains', 'transport', 'ses');
    const world = service.world();
    delete world.transports.ses;
    expect(await consumeSend(world, service.job(id))).toEqual(ACK);
    expect(status()).toBe('queued');
    expect(service.takeSends()).toEqual([{ id, delay_ms: MINUTE }]);
  });
});

describe('a transport that', () => {
  test('throws has lost track of its call: uncertain, never again (T2, T3)', async () => {
    cloudflare.answers.push(new TypeError('socket'));
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.rig.message(id)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost' });
    await expectNoMoreCalls(1);
  });

  test('does not answer in time: uncertain, never again (T5)', async () => {
    cloudflare.answers.push(TIMEOUT);
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.rig.message(id)).toMatchObject({ status: 'uncertain', status_reason: 'transport_timeout' });
    await expectNoMoreCalls(1);
  });
});
