import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, expect, test, vi } from 'vitest';
import worker from '../src/index.ts';
import { inMailbox, makeLab, waiting } from './mail.ts';
import { deploy, eventsOf, eventTypes, sql } from './support.ts';

/** One batch of delivery events as the queue hands it over. */

afterEach(() => {
  vi.restoreAllMocks();
});

const PROVIDER_ID = '0101019ab3c4-msg-4471';
const READER = 'jo@example.net';
const JOURNAL = 'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd0000000000000000000001@agents.example';

const lines = (logged: string[], word: string): string[] => logged.filter((line) => line.includes(word));

test('case 42: with repeats, stale and unknown ones: six acknowledged, none tried again, one counted as unknown (V1, V2, V5)', async () => {
  const lab = await makeLab(await deploy());
  const [row] = await sql("SELECT address FROM addresses WHERE identity_id = ? AND role = 'primary'", lab.ann);
  const { id } = await waiting(lab.key, lab.ann, {
    to: ['delivered@simulator.invalid'],
    subject: 'Booking',
    text: 'Hi',
  });
  // As if a real provider had taken it for somebody else; how it got there is not the subject.
  await inMailbox(lab.ann, "UPDATE deliveries SET address = ?, status = 'submitted'", READER);
  await inMailbox(
    lab.ann,
    "UPDATE messages SET status = 'submitted', accepted = 1, provider = 'cloudflare', provider_message_id = ? WHERE id = ?",
    PROVIDER_ID,
    id,
  );
  await inMailbox(lab.ann, "DELETE FROM meta WHERE k LIKE 'dispatch:%' OR k = 'alarm:dispatch'");
  const before = (await eventTypes(lab.ann)).length;
  const now = Date.now();
  const event = (type: string, eventId: string, minutesAgo: number, payload: object = {}): object => ({
    type: `cf.email.sending.message.${type}`,
    source: { type: 'email.sending', zoneId: 'z', domain: 'agents.example' },
    payload: {
      eventId,
      messageId: PROVIDER_ID,
      sender: row?.['address'],
      recipient: READER,
      subject: 'Booking',
      terminal: true,
      ...payload,
    },
    metadata: { eventSchemaVersion: 1, eventTimestamp: new Date(now - minutesAgo * 60_000).toISOString() },
  });
  const delivered = { delivery: { status: 'delivered', smtpStatusCode: '250' } };
  const deferred = { terminal: false, delivery: { status: 'deferred', smtpStatusCode: '451' } };
  const complained = { subject: undefined, delivery: { status: 'complained' }, complaint: { type: 'abuse' } };
  const bodies = [
    event('delivered', 'e7', 19, delivered),
    event('delivered', 'e7', 19, delivered),
    event('deferred', 'e8', 20, deferred),
    event('complained', 'e9', 1, complained),
    event('opened', 'e10', 19),
    event('delivered', 'e11', 19, { recipient: JOURNAL }),
  ];
  const logged: string[] = [];
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(console, level).mockImplementation((line: string) => void logged.push(line));
  }
  const messages = bodies.map((body, n) => ({ id: `m${n}`, timestamp: new Date(), attempts: 1, body }));
  const batch = createMessageBatch('pm-delivery-events', messages);
  await worker.queue(batch, { ...env, PM_LOG_LEVEL: 'info' });
  const result = await getQueueResult(batch, createExecutionContext());
  expect(result.explicitAcks.toSorted()).toEqual(['m0', 'm1', 'm2', 'm3', 'm4', 'm5']);
  expect([result.retryMessages, result.ackAll, result.retryBatch.retry]).toEqual([[], false, false]);
  expect(lines(logged, 'delivery_unknown_type_total')).toHaveLength(1);
  // When the provider says that it was, and not when the batch came.
  expect(await inMailbox(lab.ann, 'SELECT address, status, reported_at FROM deliveries')).toEqual([
    { address: READER, status: 'complained', reported_at: now - 60_000 },
  ]);
  const told = (await eventsOf(lab.ann)).slice(before);
  expect(told.map(({ type }) => type)).toEqual(['message.delivered', 'message.complained', 'suppression.created']);
  expect(await sql('SELECT reason, source_message_id FROM suppressions WHERE tenant_id = ?', lab.tenant)).toEqual([
    { reason: 'complaint', source_message_id: id },
  ]);
});
