import type { LearnedId } from '@pmail/core/delivery/events.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { JO, KIM } from '../mailbox/mailbox.fixture.ts';
import { report } from '../mailbox/transport.fixture.ts';
import { handOnReports } from './reports.ts';
import { Service } from './service.fixture.ts';

let service: Service;

beforeEach(async () => {
  service = await Service.create();
});

const about = (recipient: string, sender = service.address) =>
  report(service.rig, 'delivered', { source: 'ses', sender, recipient });

describe('a notification', () => {
  test('becomes one job per recipient, which names whose message it is', async () => {
    const events = [about(JO), about(KIM)];
    await handOnReports(service.world(), { events, learned: null });
    const { id: identity_id } = service.identity;
    expect(service.rig.outbound.sent.map(({ job }) => job)).toEqual(
      events.map((event) => ({ v: 1, kind: 'transport_event', tenant_id: service.tenant.id, identity_id, event })),
    );
    expect(service.counts).toEqual([]);
  });

  test('about mail of somebody who is not here is counted and dropped', async () => {
    await handOnReports(service.world(), {
      events: [about(JO, 'eve@example.org'), about(KIM)],
      learned: {
        sender: 'eve@example.org',
        provider_message_id: '0102',
        rfc_message_id: '0102@eu-west-1.amazonses.com',
        our_message_id: null,
        occurred_at: service.now,
      },
    });
    expect(service.rig.outbound.sent).toHaveLength(1);
    expect(service.counts).toEqual(['delivery_unroutable_total', 'delivery_unroutable_total']);
  });

  test('of a message that was taken becomes a job about its ids', async () => {
    const learned: LearnedId = {
      sender: service.address,
      provider_message_id: '0102',
      rfc_message_id: '0102@eu-west-1.amazonses.com',
      our_message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
      occurred_at: service.now,
    };
    await handOnReports(service.world(), { events: [], learned });
    expect(service.rig.outbound.sent.map(({ job }) => job)).toEqual([
      { v: 1, kind: 'learned_id', ...service.rig.owner, learned },
    ]);
  });

  test('that could not be handed on fails, so that it is sent again', async () => {
    service.rig.outbound.sends.failNext(1, 1);
    await expect(handOnReports(service.world(), { events: [about(JO), about(KIM)], learned: null })).rejects.toThrow();
    service.queries.failNext();
    await expect(handOnReports(service.world(), { events: [about(JO)], learned: null })).rejects.toThrow();
  });
});
