import type { LearnedId } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, expect, test } from 'vitest';
import { SECOND } from '../mailbox/mailbox.fixture.ts';
import { accepted, attempt } from '../mailbox/transport.fixture.ts';
import { consumeLearnedId } from './learned-id.ts';
import { Service } from './service.fixture.ts';

let service: Service;
let id: MessageId;
let learned: LearnedId;

beforeEach(async () => {
  service = await Service.create();
  ({ id } = await service.send());
  learned = {
    sender: service.address,
    provider_message_id: 'ses-1',
    rfc_message_id: 'ses-1@eu-west-1.amazonses.com',
    our_message_id: null,
    occurred_at: service.now,
  };
});

const consume = () => consumeLearnedId(service.world(), learned);

test('the ids that a provider tells go to the message of its sender', async () => {
  await attempt(service.rig, id, accepted({ provider_message_id: 'ses-1' }));
  for (let n = 0; n < 2; n++) expect(await consume()).toEqual({ kind: 'ack' });
  expect(service.rig.message(id).rfc_message_id).toBe('ses-1@eu-west-1.amazonses.com');
});

test('before our own record they wait for it, until they are 330 s old', async () => {
  expect(await consume()).toEqual({ kind: 'retry', delay_ms: 30 * SECOND });
  service.rig.clock.now += 330 * SECOND;
  expect(await consume()).toEqual({ kind: 'ack' });
  expect(service.counts).toEqual(['delivery_orphaned_total']);
});

test('with our own id they need no record', async () => {
  learned.our_message_id = id;
  expect(await consume()).toEqual({ kind: 'ack' });
  expect(service.rig.message(id)).toMatchObject({ status: 'queued', provider_message_id: 'ses-1' });
});

test('of a sender nobody has they are acknowledged and counted', async () => {
  learned.sender = 'who@agents.example';
  expect(await consume()).toEqual({ kind: 'ack' });
  expect(service.counts).toEqual(['delivery_unroutable_total']);
});
