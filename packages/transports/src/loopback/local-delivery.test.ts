import { describe, expect, test } from 'vitest';
import { DESK_ADDRESS, NOW, outgoing, SENDER, SHOP, SHOP_ADDRESS, TestWorld } from '../simulator/test-world.fixture.ts';
import { loopbackTransport } from '../simulator/transport.ts';
import { deliverLocally, routeLocally } from './local-delivery.ts';

describe('a local address', () => {
  test('is found without its tag, and everyone else is refused', async () => {
    const { ports } = new TestWorld();
    const tagged = 'shop.acme+t03k.9f2m@agents.example';
    expect(await routeLocally(ports, [tagged, 'gone@agents.example'])).toEqual({
      found: [{ recipient: tagged, owner: SHOP }],
      refused: [
        {
          address: 'gone@agents.example',
          smtp_code: '550',
          enhanced_code: '5.1.1',
          detail: '550 5.1.1 No such recipient here',
        },
      ],
    });
  });
});

describe('a copy', () => {
  test('has the bytes of the sender, in the place of the one who receives', async () => {
    const world = new TestWorld();
    const message = outgoing({ to: [SHOP_ADDRESS] });
    const [job] = await deliverLocally(world.ports, SENDER, message, [{ recipient: SHOP_ADDRESS, owner: SHOP }]);
    expect(job).toEqual({
      v: 1,
      kind: 'message',
      source: { type: 'routing' },
      message_id: expect.stringMatching(/^msg_/) as string,
      ...SHOP,
      r2_key: `t/${SHOP.tenant_id}/i/${SHOP.identity_id}/m/${job?.message_id}/raw.eml`,
      raw_size: message.mime.length,
      envelope_from: DESK_ADDRESS,
      envelope_to: SHOP_ADDRESS,
      received_at: NOW,
      request_id: expect.stringMatching(/^req_/) as string,
      loopback: { ...SENDER, message_id: message.message_id },
    });
    expect(world.queue).toEqual([job]);
    expect([...world.objects]).toEqual([
      [
        job?.r2_key,
        {
          bytes: message.mime,
          metadata: { tenant: SHOP.tenant_id, identity: SHOP.identity_id, message: job?.message_id },
        },
      ],
    ]);
  });

  test('is in the store before anyone is told of it', async () => {
    const world = new TestWorld();
    world.failing = 'put';
    const message = outgoing({ to: [SHOP_ADDRESS] });
    await expect(loopbackTransport(world.ports).send(message, 30_000)).rejects.toThrow('put failed');
    expect(world.queue).toEqual([]);
  });

  test('goes to each recipient by itself: to, cc, bcc and ourselves', async () => {
    const world = new TestWorld();
    const message = outgoing({ to: [SHOP_ADDRESS], cc: [DESK_ADDRESS], bcc: ['shop.acme+x@agents.example'] });
    const result = await loopbackTransport(world.ports).send(message, 30_000);
    if (result.kind !== 'accepted') throw new Error(result.kind);
    expect(result.copies).toEqual(world.queue);
    expect(world.queue.map(({ envelope_to, identity_id }) => [envelope_to, identity_id])).toEqual([
      [SHOP_ADDRESS, SHOP.identity_id],
      [DESK_ADDRESS, SENDER.identity_id],
      ['shop.acme+x@agents.example', SHOP.identity_id],
    ]);
    expect(new Set(world.queue.map(({ message_id }) => message_id)).size).toBe(3);
    expect(result.scheduled).toEqual([]);
  });

  test('of mail to nobody here is refused as a whole, and the provider has taken nothing', async () => {
    const world = new TestWorld();
    const message = outgoing({ to: ['gone@agents.example'], cc: ['also-gone@agents.example'] });
    expect(await loopbackTransport(world.ports).send(message, 30_000)).toMatchObject({
      kind: 'rejected',
      reason: 'provider_validation',
      code: '550',
      refused: [{ address: 'gone@agents.example' }, { address: 'also-gone@agents.example' }],
    });
    expect(world.log).toEqual([]);
  });
});
