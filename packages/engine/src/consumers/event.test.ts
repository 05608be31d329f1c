import { cloudflareEvent } from '@pmail/core/delivery/cloudflare-event.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Crash, JO, KIM, SECOND } from '../mailbox/mailbox.fixture.ts';
import { accepted, attempt, report, TIMEOUT } from '../mailbox/transport.fixture.ts';
import { statement } from '../sql.ts';
import { consumeEvent } from './event.ts';
import { Service } from './service.fixture.ts';
import type { Disposition } from './world.ts';

let service: Service;
let id: MessageId;

const ACK = { kind: 'ack' };

beforeEach(async () => {
  service = await Service.create();
  ({ id } = await service.send({ to: [JO, KIM] }));
  await attempt(service.rig, id, accepted());
});

/** A report about the message of the test. */
function about(kind: Parameters<typeof report>[1], changes: Partial<DeliveryEvent> = {}): DeliveryEvent {
  return report(service.rig, kind, { sender: service.address, ...changes });
}

const consume = (event: DeliveryEvent): Promise<Disposition> => consumeEvent(service.world(), event);

/** The queue delivers a job until it is acknowledged. */
async function until(event: DeliveryEvent): Promise<void> {
  for (let i = 0; i < 10; i++) {
    const disposition = await consume(event).catch(() => null);
    if (disposition?.kind === 'ack') return;
  }
  throw new Error('never acknowledged');
}

const suppressions = (): Promise<{ reason: string; address_hint: string; source_message_id: string | null }[]> =>
  service.rows('SELECT reason, address_hint, source_message_id FROM suppressions ORDER BY created_at');

describe('a report', () => {
  test('about a sender nobody has is acknowledged and counted (V4)', async () => {
    expect(await consume(about('delivered', { sender: 'who@agents.example' }))).toEqual(ACK);
    expect(service.counts).toEqual(['delivery_unroutable_total']);
  });

  test('about a sender whose address is retired finds its mailbox', async () => {
    await service.set('addresses', 'status', 'retired');
    expect(await consume(about('delivered'))).toEqual(ACK);
    expect(service.rig.statuses(id)[JO]).toBe('delivered');
  });

  test('that came before its record is tried again every 30 s, until it is 330 s old (V3)', async () => {
    const early = about('delivered', { provider_message_id: 'not yet' });
    service.rig.clock.now += 330 * SECOND - 1;
    expect(await consume(early)).toEqual({ kind: 'retry', delay_ms: 30 * SECOND });
    expect(service.counts).toEqual([]);
    service.rig.clock.now += 1;
    expect(await consume(early)).toEqual(ACK);
    expect(service.counts).toEqual(['delivery_orphaned_total']);
  });

  test('that came before its record is applied once it is there (V3)', async () => {
    const { id: other } = await service.send();
    const early = about('delivered', { provider_message_id: 'prov-2' });
    expect((await consume(early)).kind).toBe('retry');
    await attempt(service.rig, other, accepted({ provider_message_id: 'prov-2' }));
    expect(await consume(early)).toEqual(ACK);
    expect(service.rig.message(other).status).toBe('delivered');
  });

  test('that several messages could mean is counted, tried again and orphaned', async () => {
    for (let i = 0; i < 2; i++) await attempt(service.rig, (await service.send()).id, TIMEOUT);
    const unclear = about('delivered', { provider_message_id: 'prov-9' });
    expect((await consume(unclear)).kind).toBe('retry');
    service.rig.clock.now += 330 * SECOND;
    expect(await consume(unclear)).toEqual(ACK);
    expect(service.counts).toEqual([
      'reconcile_ambiguous_total',
      'reconcile_ambiguous_total',
      'delivery_orphaned_total',
    ]);
  });

  test('whose mailbox cannot be reached is left to the queue', async () => {
    service.applies.failNext();
    await expect(consume(about('delivered'))).rejects.toThrow();
    service.applies.loseNext();
    const event = about('delivered');
    await expect(consume(event)).rejects.toThrow();
    expect(await consume(event)).toEqual(ACK);
    expect(service.rig.eventTypes.filter((type) => type === 'message.delivered')).toHaveLength(1);
  });
});

describe('a suppression', () => {
  test.each([
    ['bounced', {}, 'hard_bounce'],
    ['complained', {}, 'complaint'],
    ['rejected', { suppress: 'provider' } as const, 'provider'],
  ] as const)('is written for %s, with a masked address, and told once', async (kind, changes, reason) => {
    const event = about(kind, changes);
    await consume(event);
    expect(await suppressions()).toEqual([{ reason, address_hint: 'j***@example.net', source_message_id: id }]);
    for (let i = 0; i < 3; i++) await consume(event);
    expect(await suppressions()).toHaveLength(1);
    expect(service.rig.eventData('suppression.created')).toEqual([
      { address_hint: 'j***@example.net', reason, source_message_id: id },
    ]);
  });

  test.each([
    ['soft_bounced', {}],
    ['deferred', {}],
    ['delivered', {}],
    ['failed', {}],
    // Hard by the provider's word, but about policy or routing and not about the address (R5).
    ['bounced', { enhanced_code: '5.7.1', suppress: null }],
  ] as const)('is not written for %s %j', async (kind, changes) => {
    await consume(about(kind, changes));
    expect(await suppressions()).toEqual([]);
    expect(service.rig.eventTypes).not.toContain('suppression.created');
  });

  test('is not written for somebody the message was not sent to (V4)', async () => {
    await consume(about('bounced', { recipient: 'eve@example.net' }));
    expect(await suppressions()).toEqual([]);
  });

  test('holds no address in clear', async () => {
    await consume(about('bounced'));
    const [row] = await service.rows<{ address_hash: string }>('SELECT * FROM suppressions');
    expect(row?.address_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(row)).not.toContain(JO);
  });

  test('that stands there because of another message is neither changed nor told again', async () => {
    const { id: second } = await service.send({ to: [JO] });
    await attempt(service.rig, second, accepted({ provider_message_id: 'prov-2' }));
    await consume(about('bounced'));
    await consume(about('complained', { provider_message_id: 'prov-2' }));
    expect(await suppressions()).toEqual([expect.objectContaining({ reason: 'hard_bounce', source_message_id: id })]);
    expect(service.rig.eventData('suppression.created')).toHaveLength(1);
  });

  test('that has run out is written anew, and told', async () => {
    const hash = await service.world().hashAddress(JO);
    await service.db.batch([
      statement(
        `INSERT INTO suppressions (tenant_id, address_hash, address_hint, reason, note, created_at, expires_at)
         VALUES (?, ?, 'j***@example.net', 'manual', 'on leave', ?, ?)`,
        service.tenant.id,
        hash,
        service.now - 2,
        service.now - 1,
      ),
    ]);
    await until(about('bounced'));
    expect(await service.rows('SELECT reason, note, source_message_id, expires_at FROM suppressions')).toEqual([
      { reason: 'hard_bounce', note: null, source_message_id: id, expires_at: null },
    ]);
    expect(service.rig.eventData('suppression.created')).toHaveLength(1);
  });

  test.each([
    ['dies at its start', () => service.dieAt('event.start')],
    ['dies before it', () => service.dieAt('event.applied')],
    ['dies after it', () => service.dieAt('event.suppressed')],
    ['dies after the count of its outcome', () => service.dieAt('event.outcome_recorded')],
    ['dies inside the mailbox', () => service.rig.dieAt('event.in_transaction')],
    ['hears no answer from the mailbox', () => service.applies.loseNext()],
    ['cannot read the sender', () => service.queries.failNext()],
    ['cannot write it', () => service.queries.failNext(1, 1)],
    ['hears no answer to writing it', () => service.queries.loseNext()],
    ['cannot tell of it', () => service.emits.failNext()],
    ['hears no answer to telling of it', () => service.emits.loseNext()],
  ])('is written and told exactly once when the run %s (V7)', async (_what, spoil) => {
    const event = about('bounced');
    spoil();
    await until(event);
    service.rig.clock.now += 60 * SECOND;
    for (let i = 0; i < 3; i++) await until(event);
    expect(await suppressions()).toHaveLength(1);
    expect(service.rig.eventData('suppression.created')).toHaveLength(1);
    expect(service.rig.eventTypes.filter((type) => type === 'message.bounced')).toHaveLength(1);
  });
});

describe('a batch of provider events as the queue hands it over', () => {
  const sender = 'desk.acme@agents.example';

  function body(type: string, eventId: string, at: string, changes: Record<string, unknown> = {}): unknown {
    return {
      type: `cf.email.sending.message.${type}`,
      source: { type: 'email.sending', zoneId: 'aaaabbbbccccddddeeeeffff00001111', domain: 'agents.example' },
      payload: {
        eventId,
        messageId: '0101019ab3c4-msg-4471',
        sender,
        recipient: JO,
        subject: 'Your booking 4471',
        terminal: true,
        ...changes,
      },
      metadata: { accountId: '1111', eventSubscriptionId: '9999', eventSchemaVersion: 1, eventTimestamp: at },
    };
  }

  test('case 42: with repeats, stale and unknown ones: every one is acknowledged, and what counts is applied (V1, V2, V5)', async () => {
    service.rig.clock.now = Date.parse('2026-11-30T09:00:00.000Z');
    const { id: booking } = await service.send({ to: [JO], subject: 'Your booking 4471' });
    await attempt(service.rig, booking, accepted({ provider_message_id: '0101019ab3c4-msg-4471' }));
    const before = service.rig.events.length;
    const delivered = { delivery: { status: 'delivered', smtpStatusCode: '250' } };
    const journal = 'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd0000000000000000000001@agents.example';
    const batch = [
      body('delivered', 'e7', '2026-11-30T08:41:00.000Z', delivered),
      body('delivered', 'e7', '2026-11-30T08:41:00.000Z', delivered),
      body('deferred', 'e8', '2026-11-30T08:40:30.000Z', {
        terminal: false,
        delivery: { status: 'deferred', smtpStatusCode: '451' },
      }),
      body('complained', 'e9', '2026-11-30T08:59:00.000Z', { subject: undefined, complaint: { type: 'abuse' } }),
      body('opened', 'e10', '2026-11-30T08:41:00.000Z'),
      body('delivered', 'e11', '2026-11-30T08:41:00.000Z', { recipient: journal }),
    ];
    const dispositions: Disposition[] = [];
    let unknown = 0;
    const times: number[] = [];
    for (const one of batch) {
      const parsed = cloudflareEvent(one);
      if (parsed.kind !== 'event') {
        unknown++;
        continue;
      }
      times.push(parsed.event.occurred_at);
      dispositions.push(await consume(parsed.event));
    }
    expect(unknown).toBe(1);
    expect(dispositions).toEqual([ACK, ACK, ACK, ACK, ACK]);
    expect(times[3]).toBe(Date.parse('2026-11-30T08:59:00.000Z'));
    expect(service.rig.statuses(booking)).toEqual({ [JO]: 'complained' });
    expect(service.rig.eventTypes.slice(before)).toEqual([
      'message.delivered',
      'message.complained',
      'suppression.created',
    ]);
    expect(await suppressions()).toEqual([
      { reason: 'complaint', address_hint: 'j***@example.net', source_message_id: booking },
    ]);
    expect(service.counts).toEqual([]);
  });
});

test('a crash at any mark of a report repeats into the same end (V7)', async () => {
  for (const mark of ['event.start', 'event.applied', 'event.suppressed', 'event.outcome_recorded'] as const) {
    const { id: one } = await service.send({ to: [`${mark}@example.net`] });
    await attempt(service.rig, one, accepted({ provider_message_id: mark }));
    const event = about('bounced', { provider_message_id: mark, recipient: `${mark}@example.net` });
    service.dieAt(mark);
    await expect(consume(event)).rejects.toThrow(Crash);
    expect(await consume(event)).toEqual(ACK);
    expect(service.rig.message(one).status).toBe('bounced');
  }
  expect(await suppressions()).toHaveLength(4);
  const { sql } = service.rig.quotaStorage;
  expect(sql.first("SELECT COUNT(*) AS n FROM outcomes WHERE outcome = 'bounced'")).toEqual({ n: 4 });
});
