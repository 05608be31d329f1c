import { describe, expect, test } from 'vitest';
import { type MakeBench, type Situation, transportContract } from '../contract.ts';
import { DESK_ADDRESS, outgoing, SHOP_ADDRESS, TestWorld } from './test-world.fixture.ts';
import { loopbackTransport, simulatorTransport } from './transport.ts';

const at = (script: string): string => `${script}@simulator.invalid`;

/** Benches for recipients by situation. */
function benches(
  make: typeof loopbackTransport,
  recipients: Partial<Record<Situation, Parameters<typeof outgoing>[0]>>,
  failing: TestWorld['failing'] = null,
): MakeBench {
  return (situation) => {
    const to = recipients[situation];
    if (to === undefined) return null;
    const world = new TestWorld();
    world.failing = failing;
    return { transport: make(world.ports), message: outgoing(to), taken: () => world.log };
  };
}

for (const script of ['delivered', 'bounce', 'softbounce', 'complaint', 'deferred', 'anything', 'delivered+tag']) {
  transportContract(`simulator, ${script}`, benches(simulatorTransport, { accepts: { to: [at(script)] } }));
}

transportContract(
  'simulator',
  benches(simulatorTransport, {
    accepts: { to: [at('delivered')], cc: [at('bounce')], bcc: [at('deferred')] },
    refuses: { to: [at('delivered')], bcc: [at('reject')] },
    unclear: { to: [at('delivered')], cc: [at('timeout')] },
    loses_answer: { to: [at('timeout')] },
    takes_some: { to: [at('delivered')], cc: ['gone@agents.example'] },
  }),
);

transportContract(
  'loopback',
  benches(loopbackTransport, {
    accepts: { to: [SHOP_ADDRESS], cc: [DESK_ADDRESS], bcc: ['shop.acme+tag@agents.example'] },
    refuses: { to: ['gone@agents.example'] },
    takes_some: { to: [SHOP_ADDRESS], cc: ['gone@agents.example'] },
  }),
);

for (const failing of ['route', 'put', 'send', 'taken'] as const) {
  const to = { to: [SHOP_ADDRESS, DESK_ADDRESS] };
  transportContract(`loopback whose ${failing} fails`, benches(loopbackTransport, { fails_here: to }, failing));
}

const ID = '01jd9q3v7m8x2c4n6b5k1r0e9t';

describe('a script', () => {
  const delivered = { n: 1, after_ms: 1_000, kind: 'delivered', hard: false, smtp_code: '250', enhanced_code: '2.0.0' };
  const deferred = { n: 1, after_ms: 1_000, kind: 'deferred', hard: false, smtp_code: '451', enhanced_code: '4.2.0' };

  test.each([
    ['delivered', [delivered]],
    ['anything-else', [delivered]],
    ['toString', [delivered]],
    ['bounce', [{ n: 1, after_ms: 1_000, kind: 'bounced', hard: true, smtp_code: '550', enhanced_code: '5.1.1' }]],
    ['bounce+4471', [{ n: 1, after_ms: 1_000, kind: 'bounced', hard: true }]],
    ['softbounce', [deferred, { n: 2, after_ms: 3_000, kind: 'bounced', hard: false }]],
    ['complaint', [delivered, { n: 2, after_ms: 3_000, kind: 'complained', smtp_code: null, smtp_response: null }]],
    ['deferred', [deferred]],
  ])('%s is accepted, and reports what it names', async (script, events) => {
    const world = new TestWorld();
    const result = await simulatorTransport(world.ports).send(outgoing({ to: [at(script)] }), 30_000);
    expect(result).toMatchObject({
      kind: 'accepted',
      provider_message_id: `test-${ID}`,
      rfc_message_id: `${ID}@agents.example`,
      scheduled: events.map((event) => ({ recipient: at(script), ...event })),
      copies: [],
    });
    if (result.kind === 'accepted') expect(result.scheduled).toHaveLength(events.length);
    expect(world.queue).toEqual([]);
  });

  test('of a message with a Message-ID keeps that, whoever it is from now', async () => {
    const mime = new TextEncoder().encode('From: a@b.example\r\nMessage-ID: <01jd@acme.example.com>\r\n\r\n');
    const result = await simulatorTransport(new TestWorld().ports).send(
      { ...outgoing({ to: [at('delivered')] }), mime },
      30_000,
    );
    expect(result).toMatchObject({ kind: 'accepted', rfc_message_id: '01jd@acme.example.com' });
  });

  test('reject refuses the whole message', async () => {
    const world = new TestWorld();
    const message = outgoing({ to: [at('delivered'), SHOP_ADDRESS], bcc: [at('reject')] });
    expect(await simulatorTransport(world.ports).send(message, 30_000)).toMatchObject({
      kind: 'rejected',
      reason: 'provider_validation',
      code: 'E_SIMULATED_REJECT',
      refused: [],
    });
    expect([world.queue, world.log, [...world.objects]]).toEqual([[], [], []]);
  });

  test('timeout leaves the whole message unknown, and nothing is ever reported', async () => {
    const world = new TestWorld();
    const message = outgoing({ to: [at('delivered'), at('timeout'), SHOP_ADDRESS] });
    expect(await simulatorTransport(world.ports).send(message, 30_000)).toMatchObject({
      kind: 'unknown',
      reason: 'transport_timeout',
    });
    expect(world.queue).toEqual([]);
  });

  test('reject wins over timeout', async () => {
    const message = outgoing({ to: [at('timeout'), at('reject')] });
    expect((await simulatorTransport(new TestWorld().ports).send(message, 30_000)).kind).toBe('rejected');
  });

  test('of each recipient is its own, numbered by itself', async () => {
    const message = outgoing({ to: [at('complaint')], cc: [at('softbounce')], bcc: [at('delivered')] });
    const result = await simulatorTransport(new TestWorld().ports).send(message, 30_000);
    if (result.kind !== 'accepted') throw new Error(result.kind);
    expect(result.scheduled.map(({ recipient, n, kind }) => [recipient, n, kind])).toEqual([
      [at('complaint'), 1, 'delivered'],
      [at('complaint'), 2, 'complained'],
      [at('softbounce'), 1, 'deferred'],
      [at('softbounce'), 2, 'bounced'],
      [at('delivered'), 1, 'delivered'],
    ]);
  });
});

describe('scripts beside local addresses', () => {
  test('are both served, under one id', async () => {
    const world = new TestWorld();
    const message = outgoing({ to: [at('bounce')], cc: [SHOP_ADDRESS] });
    const result = await simulatorTransport(world.ports).send(message, 30_000);
    expect(result).toMatchObject({ kind: 'accepted', provider_message_id: `test-${ID}`, refused: [] });
    if (result.kind !== 'accepted') return;
    expect(result.scheduled.map(({ recipient }) => recipient)).toEqual([at('bounce')]);
    expect(result.copies.map(({ envelope_to }) => envelope_to)).toEqual([SHOP_ADDRESS]);
    expect(world.log).toEqual([{ recipients: [at('bounce'), SHOP_ADDRESS], mime: message.mime }]);
  });

  test('that are gone are refused, each by itself', async () => {
    const message = outgoing({ to: [at('delivered'), 'gone@agents.example'] });
    expect(await simulatorTransport(new TestWorld().ports).send(message, 30_000)).toMatchObject({
      kind: 'accepted',
      refused: [{ address: 'gone@agents.example', smtp_code: '550', enhanced_code: '5.1.1' }],
    });
  });
});
