import { sesEvent } from '@pmail/core/delivery/ses-event.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { SES_MESSAGE_TAG } from '@pmail/core/ses/names.ts';
import { beforeEach, expect, test } from 'vitest';
import { accepted, attempt, TIMEOUT } from '../mailbox/transport.fixture.ts';
import { consumeEvent } from './event.ts';
import { consumeLearnedId } from './learned-id.ts';
import { Service } from './service.fixture.ts';

/** Reports of SES as they come, down to the rows that they change. The numbers are those of the cases. */

const ID = '0102019ab3c4d5e6-11223344-5566-7788-99aa-bbccddeeff00-000000';
const WIRE_ID = `${ID}@eu-west-1.amazonses.com`;

let service: Service;

beforeEach(async () => {
  service = await Service.create();
  service.rig.clock.now = Date.parse('2026-11-30T09:00:00.000Z');
});

type Tree = Record<string, unknown>;

function body(eventType: string, details: Tree, to: string, tags: Tree = {}): Tree {
  return {
    eventType,
    ...details,
    mail: {
      timestamp: '2026-11-30T08:40:01.000Z',
      source: service.address,
      messageId: ID,
      destination: [to],
      commonHeaders: {
        from: [`"Desk, Acme" <${service.address}>`],
        to: [to],
        messageId: ID,
        subject: 'Your booking 4471',
      },
      tags: { 'ses:configuration-set': ['pylota-mail'], ...tags },
    },
  };
}

async function consume(message: Tree): Promise<void> {
  const envelope = { notification_id: 'sns-1', at: service.now, region: 'eu-west-1' };
  const parsed = sesEvent(message, envelope);
  if (parsed.kind === 'learned') {
    expect(await consumeLearnedId(service.world(), parsed.learned)).toEqual({ kind: 'ack' });
  } else if (parsed.kind === 'events') {
    for (const event of parsed.events) expect(await consumeEvent(service.world(), event)).toEqual({ kind: 'ack' });
  }
}

async function booking(to: string): Promise<MessageId> {
  const { id } = await service.send({ to: [to], subject: 'Your booking 4471' });
  await attempt(service.rig, id, accepted({ provider_message_id: ID, rfc_message_id: WIRE_ID }));
  return id;
}

const outcomes = (): unknown[] =>
  service.rig.quotaStorage.sql.all('SELECT outcome, COUNT(*) AS n FROM outcomes GROUP BY outcome ORDER BY outcome');

test('case 30: the report spells the recipient in another case, and so does the next send', async () => {
  const id = await booking('reader@example.net');
  const recipient = {
    emailAddress: 'Reader@Example.NET',
    action: 'failed',
    status: '5.1.1',
    diagnosticCode: 'smtp; 550 5.1.1 unknown',
  };
  const bounce = {
    bounceType: 'Permanent',
    bounceSubType: 'General',
    bouncedRecipients: [recipient],
    timestamp: '2026-11-30T08:41:00.000Z',
  };
  await consume(body('Bounce', { bounce }, 'Reader@Example.NET'));
  expect(service.rig.message(id).deliveries).toMatchObject([
    { address: 'reader@example.net', status: 'bounced', bounce_type: 'hard', enhanced_code: '5.1.1' },
  ]);
  expect(await service.rows('SELECT reason, source_message_id FROM suppressions')).toEqual([
    { reason: 'hard_bounce', source_message_id: id },
  ]);
  for (const spelling of ['reader@example.net', 'READER@Example.net', 'Reader@example.NET']) {
    expect(await service.send({ to: [spelling] })).toMatchObject({ status: 'suppressed' });
  }
});

test('case 32: an undetermined bounce with nothing in it is soft, and suppresses nobody', async () => {
  const id = await booking('jo@example.net');
  const bounce = {
    bounceType: 'Undetermined',
    bounceSubType: 'Undetermined',
    bouncedRecipients: [{ emailAddress: 'jo@example.net' }],
    timestamp: '2026-11-30T08:41:00.000Z',
  };
  await consume(body('Bounce', { bounce }, 'jo@example.net'));
  expect(service.rig.message(id).deliveries).toMatchObject([
    { status: 'bounced', bounce_type: 'soft', smtp_code: null, enhanced_code: null },
  ]);
  expect(await service.rows('SELECT 1 FROM suppressions')).toEqual([]);
  expect(outcomes()).toEqual([{ outcome: 'other', n: 1 }]);
});

test('a send whose answer was lost is known by Send and settled by the delivery, both with our tag', async () => {
  const { id } = await service.send({ to: ['jo@example.net'], subject: 'Your booking 4471' });
  await attempt(service.rig, id, TIMEOUT);
  const tags = { [SES_MESSAGE_TAG]: [id] };
  await consume(body('Send', { send: {} }, 'jo@example.net', tags));
  expect(service.rig.message(id)).toMatchObject({
    status: 'uncertain',
    provider_message_id: ID,
    rfc_message_id: WIRE_ID,
  });
  const delivery = { recipients: ['jo@example.net'], smtpResponse: '250 2.0.0 OK' };
  await consume(body('Delivery', { delivery }, 'jo@example.net', tags));
  expect(service.rig.message(id)).toMatchObject({ status: 'delivered', flags: ['reconciled'] });
  expect(service.rig.quotaBooks.used).toBe(1);
});

test('what SES never sent because of its own list is suppressed here too, and is no complaint', async () => {
  const id = await booking('jo@example.net');
  const complaint = {
    complainedRecipients: [{ emailAddress: 'jo@example.net' }],
    complaintSubType: 'OnAccountSuppressionList',
    timestamp: '2026-11-30T08:41:00.000Z',
  };
  await consume(body('Complaint', { complaint }, 'jo@example.net'));
  expect(service.rig.message(id).status).toBe('bounced');
  expect(await service.rows('SELECT reason FROM suppressions')).toEqual([{ reason: 'provider' }]);
  expect(outcomes()).toEqual([{ outcome: 'other', n: 1 }]);
});
