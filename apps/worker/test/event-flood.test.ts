import { createExecutionContext, createMessageBatch, getQueueResult, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll, expect, test } from 'vitest';
import worker from '../src/index.ts';
import { atRest, inMailbox, makeLab, quotaObject } from './mail.ts';
import { keepStorage } from './storage.ts';
import { deploy, eventTypes, sql } from './support.ts';

/** Many reports about one mailbox, through the consumer of their queue, with several batches at once (V9). */

keepStorage();

const MESSAGES = 100;
const RECIPIENTS = 10;
const BATCH = 10;
const AT_ONCE = 6;

let lab: Awaited<ReturnType<typeof makeLab>>;
let sender: string;

beforeAll(async () => {
  lab = await makeLab(await deploy());
  const [row] = await sql("SELECT address FROM addresses WHERE identity_id = ? AND role = 'primary'", lab.ann);
  sender = String(row?.['address']);
  // Mail that a provider has taken. How it got there is not the subject.
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)`;
  await inMailbox(
    lab.ann,
    "INSERT INTO threads (seq, id, subject, first_at, last_at) VALUES (1, 'thr', 'Flood', 0, 0)",
  );
  await inMailbox(
    lab.ann,
    `INSERT INTO messages (rowid, id, thread_seq, direction, status, provider, provider_message_id, from_address, subject,
       received_at, kind, accepted)
     ${numbers} SELECT i, 'msg_' || i, 1, 'outbound', 'submitted', 'cloudflare', 'prov-' || i, ?, 'Flood', 0,
       'transactional', 1 FROM n`,
    MESSAGES,
    sender,
  );
  await inMailbox(
    lab.ann,
    `INSERT INTO deliveries (message_rowid, address, field, status, updated_at)
     ${numbers} SELECT m.rowid, 'r' || i || '@example.net', 'to', 'submitted', 0 FROM n JOIN messages m`,
    RECIPIENTS,
  );
});

const NOW = Date.now();

function report(message: number, recipient: number, type: 'deferred' | 'delivered'): unknown {
  return {
    type: `cf.email.sending.message.${type}`,
    source: { type: 'email.sending', zoneId: 'z', domain: 'agents.example' },
    payload: {
      eventId: `${type} ${message} ${recipient}`,
      messageId: `prov-${message}`,
      sender,
      recipient: `r${recipient}@example.net`,
      subject: 'Flood',
      delivery: { status: type, smtpStatusCode: type === 'delivered' ? '250' : '451' },
    },
    metadata: {
      eventSchemaVersion: 1,
      eventTimestamp: new Date(NOW - (type === 'delivered' ? 0 : 1_000)).toISOString(),
    },
  };
}

/** An order that is always the same and looks like none. */
function shuffled<T>(items: T[]): T[] {
  const place = items.map((_, index) => ({ index, key: (index * 48_271) % 65_537 }));
  return place.sort((a, b) => a.key - b.key).flatMap(({ index }) => items.slice(index, index + 1));
}

test('all are applied and none twice, whatever the order and however often each comes', async () => {
  const bodies: unknown[] = [];
  for (let message = 1; message <= MESSAGES; message++) {
    for (let recipient = 1; recipient <= RECIPIENTS; recipient++) {
      bodies.push(report(message, recipient, 'delivered'));
      if (recipient % 5 === 0) bodies.push(report(message, recipient, 'delivered'));
      if (recipient % 5 === 1) bodies.push(report(message, recipient, 'deferred'));
    }
  }
  const waiting = shuffled(bodies);
  let [id, acknowledged] = [0, 0];
  const consumer = async (): Promise<void> => {
    for (let some = waiting.splice(0, BATCH); some.length > 0; some = waiting.splice(0, BATCH)) {
      const messages = some.map((body) => ({ id: `m${++id}`, timestamp: new Date(), attempts: 1, body }));
      const batch = createMessageBatch('pm-delivery-events', messages);
      await worker.queue(batch, env);
      acknowledged += (await getQueueResult(batch, createExecutionContext())).explicitAcks.length;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, consumer));
  expect(acknowledged).toBe(bodies.length);
  expect(await inMailbox(lab.ann, 'SELECT status, COUNT(*) AS n FROM deliveries GROUP BY status')).toEqual([
    { status: 'delivered', n: MESSAGES * RECIPIENTS },
  ]);
  expect(await inMailbox(lab.ann, 'SELECT status, COUNT(*) AS n FROM messages GROUP BY status')).toEqual([
    { status: 'delivered', n: MESSAGES },
  ]);
  await atRest(lab.ann);
  const told = (await eventTypes(lab.ann)).filter((type) => type === 'message.delivered');
  expect(told).toHaveLength(MESSAGES * RECIPIENTS);
  const counted = await runInDurableObject(await quotaObject(lab.tenant), (_quota, { storage }) =>
    storage.sql.exec<{ n: number }>("SELECT COUNT(*) AS n FROM outcome_events WHERE event_id LIKE 'delivered %'").one(),
  );
  expect(counted).toEqual({ n: MESSAGES * RECIPIENTS });
}, 120_000);
