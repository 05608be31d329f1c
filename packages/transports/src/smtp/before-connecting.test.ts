import { describe, expect, test } from 'vitest';
import { ALL, HOST, JO, letter, MINUTE, rig, script } from './relay.fixture.ts';

/** What must be known before a connection to a relay is made. Whatever stands against it, nothing was sent. */

const later = (code: string): object => ({ kind: 'retry_later', class: 'relay', code, refused: [] });

describe('a relay is not connected to', () => {
  test.each([
    ['localhost', 465],
    ['127.0.0.1', 465],
    ['[::1]', 465],
    ['2130706433', 465],
    ['0x7f000001', 465],
    ['relay', 465],
    ['relay.internal', 587],
    ['mail.agents.pmail.test', 465],
    ['relay.example.net', 25],
    ['relay.example.net', 2525],
  ])('under a name or port like %s:%i', async (host, port) => {
    const { send, ports, relay } = rig([script(...ALL)]);
    const settings = await ports.relayOf('acme.example.com');
    ports.relayOf = async () => (settings === null ? null : { ...settings, host, port });
    expect(await send()).toMatchObject(later('relay_not_allowed'));
    expect(relay.sessions).toEqual([]);
  });

  test.each([
    ['a private one', ['10.0.0.1']],
    ['a private one among public ones', ['8.8.8.8', '1.1.1.1', '192.168.1.1']],
    ['loopback in IPv6', ['2a00:1450::1', '::1']],
    ['IPv4 inside IPv6', ['::ffff:169.254.169.254']],
    ['something that is no address', ['8.8.8.8', 'relay']],
  ])('whose addresses hold %s', async (_what, addresses) => {
    const { send, relay } = rig([script(...ALL)], { resolve: async () => addresses });
    expect(await send()).toMatchObject(later('relay_not_allowed'));
    expect(relay.sessions).toEqual([]);
  });

  test.each([
    ['has no address', { resolve: async () => [] }, 'relay_not_resolved'],
    ['cannot be looked up', { resolve: () => Promise.reject(new Error('SERVFAIL')) }, 'relay_not_resolved'],
    ['is not set up', { relayOf: async () => null }, 'relay_not_configured'],
    ['cannot be read', { relayOf: () => Promise.reject(new Error('sealed')) }, 'relay_unreadable'],
  ])('that %s (T1)', async (_what, changes, code) => {
    const { send, relay } = rig([script(...ALL)], changes);
    expect(await send()).toMatchObject(later(code));
    expect(relay.sessions).toEqual([]);
  });

  test('when finding it takes as long as the whole exchange may', async () => {
    const { send, relay } = rig([script(...ALL)], { resolve: () => new Promise(() => {}) });
    const result = send();
    await relay.clock.advance(4 * MINUTE);
    expect(await result).toMatchObject(later('smtp_timeout'));
  });

  test('for an address that could not stand in a command', async () => {
    for (const address of ['jo@example.net>\r\nRCPT TO:<eve@example.net', 'Jo@example.net', 'jo', 'jö@example.net']) {
      const { send, relay } = rig([script(...ALL)]);
      expect(await send(letter({ to: [JO], bcc: [address] }))).toMatchObject({ kind: 'rejected' });
      expect(relay.sessions).toEqual([]);
    }
  });
});

describe('a relay is connected to', () => {
  test('once its name was looked up, for every connection anew', async () => {
    const asked: string[] = [];
    const { send } = rig([script(...ALL), script(...ALL)], {
      resolve: async (host) => {
        asked.push(host);
        return ['8.8.8.8', '2a00:1450::1'];
      },
    });
    await send();
    await send();
    expect(asked).toEqual([HOST, HOST]);
  });

  test('what finding it took counts into the time of the exchange', async () => {
    const { send, relay, ports } = rig([script(...ALL.slice(0, -2), { expect: 'BODY', silent_s: 600 })]);
    ports.resolve = async () => {
      await relay.clock.advance(3.5 * MINUTE);
      return ['8.8.8.8'];
    };
    expect(await send()).toMatchObject({ kind: 'unknown', reason: 'transport_timeout' });
    expect(relay.clock.now()).toBe(4 * MINUTE);
  });

  test('on this machine, where that is allowed, on any port and without being looked up', async () => {
    const local = script(...ALL);
    const { send, ports } = rig([{ ...local, relay: { ...local.relay, host: 'localhost', port: 4465 } }], {
      rules: { api_host: 'api.pmail.test', platform_domain: 'agents.pmail.test', allow_loopback: true },
      resolve: () => Promise.reject(new Error('asked')),
    });
    const settings = await ports.relayOf('acme.example.com');
    ports.relayOf = async () => (settings === null ? null : { ...settings, tls: 'implicit' });
    expect(await send()).toMatchObject({
      kind: 'accepted',
      provider_message_id: expect.stringMatching(/^smtp:localhost:/) as string,
    });
  });
});
