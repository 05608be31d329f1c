import type { MessageId } from '@pmail/core/ids.ts';
import type { ProviderSuppression } from '@pmail/core/transport/types.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { suppress } from '../directory/suppressions.ts';
import { Crash, JO, KIM, LEE, MINUTE } from '../mailbox/mailbox.fixture.ts';
import { accepted, SUPPRESSED, TIMEOUT } from '../mailbox/transport.fixture.ts';
import { Service, type TransportDouble } from './service.fixture.ts';

/** A provider refuses a whole message because it delivers nothing to some of its recipients. */

let service: Service;
let cloudflare: TransportDouble;
let id: MessageId;

const ACK = { kind: 'ack' };

beforeEach(async () => {
  service = await Service.create();
  ({ cloudflare } = service.transports);
  ({ id } = await service.send({ to: [JO], cc: [KIM], bcc: [LEE] }));
  service.takeSends();
});

const listed = (address: string, changes: Partial<ProviderSuppression> = {}): ProviderSuppression => ({
  address,
  reason: 'hard_bounce',
  expires_at: null,
  ...changes,
});
const status = (): string => service.rig.message(id).status;
const recipients = (): string[][] => cloudflare.calls.map(({ message: { to, cc, bcc } }) => [...to, ...cc, ...bcc]);

async function suppressions(): Promise<object[]> {
  const rows = await service.rows<{ address_hint: string; reason: string; expires_at: number | null }>(
    'SELECT address_hint, reason, source_message_id, expires_at FROM suppressions ORDER BY address_hint, created_at',
  );
  return rows;
}

describe('who is suppressed', () => {
  test('is left out of the next call, and goes on our list as told by the provider', async () => {
    cloudflare.answers.push(SUPPRESSED);
    cloudflare.suppressions = [listed(KIM, { expires_at: service.now + MINUTE })];
    expect(await service.consume(id)).toEqual(ACK);
    expect(recipients()).toEqual([
      [JO, KIM, LEE],
      [JO, LEE],
    ]);
    expect(service.rig.statuses(id)).toEqual({ [JO]: 'submitted', [KIM]: 'suppressed', [LEE]: 'submitted' });
    expect(await suppressions()).toEqual([
      { address_hint: 'k***@example.net', reason: 'provider', source_message_id: id, expires_at: service.now + MINUTE },
    ]);
    expect(service.rig.eventData('suppression.created')).toEqual([
      { address_hint: 'k***@example.net', reason: 'provider', source_message_id: id },
    ]);
    expect(service.rig.eventTypes).toEqual(['suppression.created', 'message.sent']);
    expect(service.rig.quotaBooks.used).toBe(2);
  });

  test('can become known one after the other, three times', async () => {
    cloudflare.answers.push(SUPPRESSED, SUPPRESSED, SUPPRESSED);
    cloudflare.suppressions = [listed(JO)];
    const run = service.consume(id);
    const send = cloudflare.send.bind(cloudflare);
    // The provider's list tells another each time.
    let call = 0;
    cloudflare.send = (message, deadline) => {
      cloudflare.suppressions = [listed([JO, KIM, LEE][call++] ?? '')];
      return send(message, deadline);
    };
    await run;
    expect(recipients()).toEqual([[JO, KIM, LEE], [KIM, LEE], [LEE]]);
    expect(status()).toBe('suppressed');
    expect(await suppressions()).toHaveLength(3);
  });

  test('is clear when there is only one', async () => {
    ({ id } = await service.send({ to: [JO] }));
    cloudflare.answers.push(SUPPRESSED);
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('suppressed');
    expect(service.rig.message(id).deliveries?.[0]?.smtp_response).toBe(
      'provider: suppressed (E_RECIPIENT_SUPPRESSED)',
    );
    expect(await suppressions()).toMatchObject([{ reason: 'provider', expires_at: null }]);
    expect(service.rig.eventTypes).toEqual(['suppression.created', 'message.suppressed']);
  });

  test.each([
    ['names nobody', []],
    ['names only others', [listed('eve@example.net')]],
    ['cannot be asked', new Error('no token')],
  ])('cannot be known when the provider %s: the message is refused for all', async (_what, told) => {
    cloudflare.answers.push(SUPPRESSED);
    cloudflare.suppressions = told;
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.rig.message(id)).toMatchObject({
      status: 'rejected',
      status_reason: 'recipient_suppressed_by_provider',
    });
    expect(cloudflare.calls).toHaveLength(1);
    expect(await suppressions()).toEqual([]);
  });

  test('cannot be known of a transport that is never asked', async () => {
    await service.set('domains', 'transport', 'smtp');
    const { smtp } = service.transports;
    smtp.answers.push(SUPPRESSED);
    (smtp as { findSuppressed?: unknown }).findSuppressed = undefined;
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('rejected');
  });

  test('cannot be written down: nothing was sent, so the message waits, and is right the next time', async () => {
    cloudflare.answers.push(SUPPRESSED, SUPPRESSED);
    cloudflare.suppressions = [listed(KIM)];
    // The scope is read before it.
    service.queries.failNext(1, 1);
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('queued');
    expect(service.takeSends()).toEqual([{ id, delay_ms: MINUTE }]);
    await service.rig.advance(MINUTE);
    expect(await service.consume(id)).toEqual(ACK);
    expect(recipients()).toEqual([
      [JO, KIM, LEE],
      [JO, KIM, LEE],
      [JO, LEE],
    ]);
    expect(service.rig.eventData('suppression.created')).toHaveLength(1);
  });

  test('is told of exactly once, also when that fails at first and the message has to wait', async () => {
    cloudflare.answers.push(SUPPRESSED);
    cloudflare.suppressions = [listed(KIM)];
    service.emits.failNext();
    expect(await service.consume(id)).toEqual(ACK);
    expect(status()).toBe('queued');
    cloudflare.answers.push(SUPPRESSED);
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.rig.eventData('suppression.created')).toHaveLength(1);
    expect(await suppressions()).toHaveLength(1);
  });
});

test('who was on our list before stays there for that reason, and nothing is told', async () => {
  const hash = await service.world().hashAddress(KIM);
  await suppress(service.db, {
    tenant_id: service.tenant.id,
    address_hash: hash,
    address_hint: 'k***@example.net',
    reason: 'complaint',
    source_message_id: null,
    note: null,
    created_at: service.now,
  });
  cloudflare.answers.push(SUPPRESSED);
  cloudflare.suppressions = [listed(KIM)];
  await service.consume(id);
  expect(await suppressions()).toMatchObject([{ reason: 'complaint', source_message_id: null, expires_at: null }]);
  expect(service.rig.eventTypes).toEqual(['message.sent']);
});

describe('no recipient is in a second call unless the first has ended', () => {
  beforeEach(() => {
    cloudflare.answers.push(SUPPRESSED);
    cloudflare.suppressions = [listed(JO)];
  });

  test('when the answer of the round is lost once', async () => {
    service.rounds.loseNext();
    expect(await service.consume(id)).toEqual(ACK);
    expect(recipients()).toEqual([
      [JO, KIM, LEE],
      [KIM, LEE],
    ]);
    expect(service.rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'submitted', [LEE]: 'submitted' });
  });

  test('when it never comes: the others become uncertain, and nobody calls', async () => {
    service.rounds.loseNext(2);
    await expect(service.consume(id)).rejects.toThrow();
    expect(await service.consume(id)).toEqual(ACK);
    await service.rig.advance(6 * MINUTE);
    expect(service.rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'uncertain', [LEE]: 'uncertain' });
    expect(cloudflare.calls).toHaveLength(1);
  });

  test('when the next call is lost', async () => {
    cloudflare.answers.push(TIMEOUT);
    expect(await service.consume(id)).toEqual(ACK);
    expect(service.rig.statuses(id)).toEqual({ [JO]: 'suppressed', [KIM]: 'uncertain', [LEE]: 'uncertain' });
    expect(await service.consume(id)).toEqual(ACK);
    expect(cloudflare.calls).toHaveLength(2);
  });

  test.each([
    ['consume.transport_done', 1, 1, 'uncertain'],
    ['consume.suppressed_synced', 1, 1, 'uncertain'],
    ['consume.claimed', 2, 1, 'uncertain'],
    ['consume.message_read', 2, 1, 'uncertain'],
    ['consume.transport_done', 2, 2, 'uncertain'],
    ['consume.recorded', 1, 2, 'submitted'],
  ] as const)('when the run dies at %s, visit %i: %i calls, and %s', async (mark, visit, calls, end) => {
    service.dieAt(mark, visit);
    await expect(service.consume(id)).rejects.toThrow(Crash);
    for (let i = 0; i < 3; i++) expect(await service.consume(id)).toEqual(ACK);
    await service.rig.advance(6 * MINUTE);
    for (const { id: again } of service.takeSends()) await service.consume(again);
    expect(cloudflare.calls).toHaveLength(calls);
    expect(status()).toBe(end);
  });

  test('when the next call takes some of the rest', async () => {
    cloudflare.answers.push(accepted());
    const [, second] = await Promise.all([service.consume(id), service.consume(id)]);
    expect(second).toEqual(ACK);
    expect(cloudflare.calls).toHaveLength(2);
  });
});
