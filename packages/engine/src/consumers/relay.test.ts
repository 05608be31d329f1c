import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { RelayScript } from '@pmail/testkit/smtp/script.ts';
import { idle } from '@pmail/testkit/smtp/virtual-clock.ts';
import {
  BARE_CODES,
  CODE_ON_EVERY_LINE,
  CUT_CHARACTER,
  DOT_DEFERRED,
  HEALTHY,
  MAIL_REFUSED,
  mixed,
} from '@pmail/transports/smtp/cases.fixture.ts';
import { type RelayRig, rig } from '@pmail/transports/smtp/relay.fixture.ts';
import { smtpTransport } from '@pmail/transports/smtp/transport.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, JO, KIM } from '../mailbox/mailbox.fixture.ts';
import { Places } from './relay-places.ts';
import { consumeSend } from './send.ts';
import { Service } from './service.fixture.ts';
import type { ConsumerWorld, Disposition } from './world.ts';

/** Messages of a domain with a relay of its own, from the queue to the status of each recipient. */

let service: Service;

beforeEach(async () => {
  service = await Service.create();
  await service.set('domains', 'transport', 'smtp');
});

/** The service with a relay that plays scripts, one for each connection. */
function withRelay(...scripts: RelayScript[]): { relay: RelayRig; consume: (id: MessageId) => Promise<Disposition> } {
  const relay = rig(scripts);
  const transports = { smtp: smtpTransport(relay.ports) };
  return { relay, consume: (id) => consumeSend({ ...service.world(), transports }, service.job(id)) };
}

const status = (id: MessageId): string => service.rig.message(id).status;

const attempts = (id: MessageId): unknown[] =>
  service.rig.engine
    .listAttempts(id)
    .map(({ result, detail_json: json }) => ({ result, ...(JSON.parse(json ?? '{}') as object) }));

async function bytesSent(relay: RelayRig): Promise<string[]> {
  return relay.relay.sessions.flatMap(({ player }) => player.bodies.map((body) => body.toString('latin1')));
}

describe('reports of others', () => {
  test('case 12: replies that are only a code', async () => {
    const { consume } = withRelay(BARE_CODES);
    const { id } = await service.send();
    await consume(id);
    expect(attempts(id)).toMatchObject([{ result: 'accepted' }]);
    expect(status(id)).toBe('submitted');
  });

  test('case 13: an enhanced code on each line of a reply', async () => {
    const { consume } = withRelay(CODE_ON_EVERY_LINE);
    const { id } = await service.send({ to: ['gone@example.net', JO] });
    await consume(id);
    const [gone, jo] = service.rig.message(id).deliveries ?? [];
    expect(gone).toMatchObject({
      address: 'gone@example.net',
      status: 'rejected',
      smtp_code: '550',
      enhanced_code: '5.1.1',
      smtp_response:
        'There is no such account. Please check the address for typing errors or extra blanks. See https://support.example.net/?p=NoUser k1s2.3 - gs',
    });
    expect(gone?.smtp_response?.length).toBeLessThanOrEqual(512);
    expect(jo).toMatchObject({ address: JO, status: 'submitted' });
  });

  test('case 22: a reply cut inside a character and between CR and LF', async () => {
    const { consume } = withRelay(CUT_CHARACTER);
    const { id } = await service.send();
    await consume(id);
    const [delivery] = service.rig.message(id).deliveries ?? [];
    expect(delivery).toMatchObject({
      status: 'rejected',
      smtp_code: '550',
      enhanced_code: '5.1.1',
      smtp_response: '<jo@example.net>: adresse refusée, boîte inconnue',
    });
    expect(JSON.stringify([delivery, attempts(id)])).not.toContain('\ufffd');
  });

  test('case 25: a permanent refusal is not tried again', async () => {
    const { consume, relay } = withRelay(MAIL_REFUSED);
    const { id } = await service.send();
    expect(await consume(id)).toEqual({ kind: 'ack' });
    expect(attempts(id)).toMatchObject([{ result: 'rejected', reason: 'provider_validation', code: '550' }]);
    expect(service.rig.message(id)).toMatchObject({
      status: 'rejected',
      status_reason: 'provider_validation',
      deliveries: [{ status: 'rejected', smtp_code: '550', enhanced_code: '5.1.7' }],
    });
    service.takeSends();
    await service.rig.advance(DAY);
    for (const { id: again } of service.takeSends()) await consume(again);
    await consume(id);
    expect(relay.relay.sessions).toHaveLength(1);
  });

  test('case 3: 451 to the final dot and the door is a refusal, not a doubt', async () => {
    const { consume, relay } = withRelay(DOT_DEFERRED, HEALTHY);
    const { id } = await service.send();
    service.takeSends();
    await consume(id);
    expect(attempts(id)).toMatchObject([{ result: 'retry_later', class: 'relay', code: '451' }]);
    expect(JSON.stringify(attempts(id))).toContain('451 4.4.2 Timeout waiting');
    expect(status(id)).toBe('queued');
    const [again] = service.takeSends();
    expect(again?.delay_ms).toBeGreaterThanOrEqual(54_000);
    expect(again?.delay_ms).toBeLessThanOrEqual(66_000);
    await service.rig.advance(again?.delay_ms ?? 0);
    await consume(id);
    expect(attempts(id)).toMatchObject([{ result: 'retry_later' }, { result: 'accepted' }]);
    expect(status(id)).toBe('submitted');
    const [first, second] = await bytesSent(relay);
    expect(first).toMatch(/^Message-ID: <.+>\r$/m);
    expect(second).toBe(first);
  });
});

describe('recipients with different answers (T4)', () => {
  test('each have their own status; only those put off are asked for again, under the same Message-ID', async () => {
    const LEE = 'lee@example.org';
    const { consume, relay } = withRelay(
      mixed('250 Ok', '451 4.7.1 Greylisted', '550 5.1.1 No such user'),
      mixed('250 Ok'),
    );
    const { id } = await service.send({ to: [JO], cc: [KIM], bcc: [LEE] });
    service.takeSends();
    await consume(id);
    const statuses = (): unknown[] =>
      (service.rig.message(id).deliveries ?? []).map(({ address, status: of }) => [address, of]);
    expect(statuses()).toEqual([
      [JO, 'submitted'],
      [KIM, 'queued'],
      [LEE, 'rejected'],
    ]);
    expect(status(id)).toBe('queued');
    const [again] = service.takeSends();
    await service.rig.advance(again?.delay_ms ?? 0);
    await consume(id);
    expect(statuses()).toEqual([
      [JO, 'submitted'],
      [KIM, 'submitted'],
      [LEE, 'rejected'],
    ]);
    expect(relay.lines(1).filter((line) => line.startsWith('RCPT'))).toEqual([`RCPT TO:<${KIM}>`]);
    const [first, second] = await bytesSent(relay);
    expect(second).toBe(first);
    expect(service.rig.message(id).provider_message_id).toMatch(/^smtp:smtp\.relay\.example\.net:.+@agents\.example$/);
  });
});

describe('places at relays', () => {
  /** Ten sends at once, of which so many hold a connection as there are places. */
  async function ten(
    places: Places | null,
  ): Promise<{ relay: RelayRig; world: () => ConsumerWorld; ids: MessageId[] }> {
    const relay = rig(Array.from({ length: 10 }, () => HEALTHY));
    const transports = { smtp: smtpTransport(relay.ports) };
    const ids: MessageId[] = [];
    for (let n = 0; n < 10; n++) ids.push((await service.send({ subject: `Number ${n}` })).id);
    const world = (): ConsumerWorld => ({
      ...service.world(),
      transports,
      ...(places === null ? {} : { relay_places: places }),
    });
    return { relay, world, ids };
  }

  test('a batch of ten sends never holds more than four connections, and all of them leave', async () => {
    const { relay, world, ids } = await ten(new Places(LIMITS.smtp_connections_max));
    await Promise.all(ids.map((id) => consumeSend(world(), service.job(id))));
    expect(relay.relay.open_most).toBe(4);
    expect(relay.relay.open_now).toBe(0);
    expect(ids.map(status)).toEqual(ids.map(() => 'submitted'));
  });

  test('without places they would all be open at once', async () => {
    const { relay, world, ids } = await ten(null);
    await Promise.all(ids.map((id) => consumeSend(world(), service.job(id))));
    expect(relay.relay.open_most).toBeGreaterThan(4);
  });

  test('nobody claims a call before there is a place for it', async () => {
    const places = new Places(1);
    const held = await places.take();
    const { world, ids } = await ten(places);
    const [id] = ids as [MessageId];
    const waiting = consumeSend(world(), service.job(id));
    await idle();
    await service.rig.advance(HOUR);
    expect(service.rig.engine.listAttempts(id)).toEqual([]);
    held.give();
    expect(await waiting).toEqual({ kind: 'ack' });
    expect(status(id)).toBe('submitted');
  });

  test('who waited looks again at who sends', async () => {
    const places = new Places(1);
    const held = await places.take();
    const { world, ids, relay } = await ten(places);
    const [id] = ids as [MessageId];
    const waiting = consumeSend(world(), service.job(id));
    await idle();
    await service.set('identities', 'status', 'paused');
    held.give();
    await waiting;
    expect(status(id)).toBe('canceled');
    expect(relay.relay.sessions).toEqual([]);
  });

  test('a place comes back when the run fails', async () => {
    const places = new Places(1);
    const { world, ids } = await ten(places);
    const [first, second] = ids as [MessageId, MessageId];
    service.begins.failNext(2);
    await expect(consumeSend(world(), service.job(first))).rejects.toThrow();
    expect(await consumeSend(world(), service.job(second))).toEqual({ kind: 'ack' });
    expect(status(second)).toBe('submitted');
  });

  test('are not for those who send in another way', async () => {
    await service.set('domains', 'transport', 'cloudflare');
    const places = new Places(1);
    await places.take();
    const { id } = await service.send();
    expect(await consumeSend({ ...service.world(), relay_places: places }, service.job(id))).toEqual({ kind: 'ack' });
    expect(status(id)).toBe('submitted');
  });
});

test('a call to a relay has four minutes, every other thirty seconds', async () => {
  const { id } = await service.send();
  await service.consume(id);
  expect(service.transports.smtp.calls.map(({ deadline_ms: ms }) => ms)).toEqual([240_000]);
  await service.set('domains', 'transport', 'cloudflare');
  const other = await service.send();
  await service.consume(other.id);
  expect(service.transports.cloudflare.calls.map(({ deadline_ms: ms }) => ms)).toEqual([30_000]);
});
