import type { TransportResult } from '@pmail/core/transport/types.ts';
import type { ScriptStep } from '@pmail/testkit/smtp/script.ts';
import {
  ALL,
  EHLO,
  JO,
  LOGGED_IN,
  LOGIN,
  letter,
  STARTTLS,
  UP_TO_DATA,
  UP_TO_TLS,
} from '@pmail/transports/smtp/relay.fixture.ts';
import { systemClock } from '@pmail/transports/smtp/socket.ts';
import { smtpTransport } from '@pmail/transports/smtp/transport.ts';
import { describe, expect, test } from 'vitest';
import { openRelaySocket } from '../src/ports/relay-socket.ts';
import { meant, RemoteRelay } from './relay/control.ts';
import { keepStorage } from './storage.ts';

/** The exchange with a relay over the platform's own sockets, in the runtime, with real TLS. */

keepStorage();

const relay = new RemoteRelay('sockets');

interface Options {
  port?: number;
  host?: string;
  deadline?: number;
  message?: ReturnType<typeof letter>;
}

/** Sends to a relay of this machine that plays a script. */
async function send(
  tls: 'implicit' | 'starttls',
  steps: ScriptStep[],
  options: Options = {},
): Promise<TransportResult> {
  const { port = relay.ports.port, host = 'localhost', deadline = 20_000, message = letter() } = options;
  await relay.play(tls, steps);
  const transport = smtpTransport({
    rules: { api_host: 'api.example', platform_domain: 'agents.example', allow_loopback: true },
    ehlo_name: 'api.example',
    relayOf: async () => ({ host, port, tls, ...LOGIN, probe_from: 'postmaster@acme.example.com' }),
    resolve: () => Promise.reject(new Error('nobody is asked for this machine')),
    envelopeIdOf: async () => 'envelope',
    requestDomainCheck: async () => {},
    open: openRelaySocket,
    clock: systemClock,
  });
  return transport.send(message, deadline);
}

const SHAKE = { ...STARTTLS, tls: 'localhost' };
const SECURE = [...UP_TO_TLS, SHAKE, EHLO, ...ALL.slice(2)];

describe('a message through the platform', () => {
  test.each([
    ['with TLS from the first byte', 'implicit', ALL],
    ['by STARTTLS', 'starttls', SECURE],
    ['byte by byte', 'implicit', ALL.map((step) => ({ ...step, bytewise: true }))],
  ] as const)('%s arrives as it is', async (_what, tls, steps) => {
    expect(await send(tls, [...steps])).toMatchObject({
      kind: 'accepted',
      provider_message_id: 'smtp:localhost:01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com',
    });
    const { sessions } = await relay.heard();
    expect(sessions).toMatchObject([{ mismatch: null, taken: [[JO]] }]);
    expect(meant(sessions[0]?.bodies[0] ?? '')).toEqual(letter().mime);
  });

  test('of five megabytes arrives', async () => {
    const mime = new TextEncoder().encode(`Subject: x\r\n\r\n${`${'0123456789'.repeat(7)}\r\n`.repeat(70_000)}`);
    expect(await send('starttls', SECURE, { message: letter({ mime }) })).toMatchObject({ kind: 'accepted' });
    const { sessions } = await relay.heard();
    expect(atob(sessions[0]?.bodies[0] ?? '').length).toBe(mime.length + 3);
  });
});

describe('a handshake', () => {
  const other = { ...STARTTLS, tls: 'other.example.net' };
  const broken: ScriptStep = { expect: '^STARTTLS$', send: ['220 Go'], broken_tls: true };
  const rows: [string, 'implicit' | 'starttls', ScriptStep[], Options][] = [
    ['with a certificate for another name', 'implicit', [{ tls: 'other.example.net' }, ...ALL], {}],
    ['with a certificate for another name, by STARTTLS', 'starttls', [...UP_TO_TLS, other], {}],
    ['with a certificate of an authority that is not trusted', 'implicit', ALL, { port: relay.ports.stranger }],
    ['with such a certificate, by STARTTLS', 'starttls', SECURE, { port: relay.ports.stranger }],
    ['for an address, with a certificate for a name', 'implicit', ALL, { host: '127.0.0.1' }],
    ['for an address, by STARTTLS', 'starttls', SECURE, { host: '127.0.0.1' }],
    ['that ends half way', 'implicit', [{ broken_tls: true }], {}],
    ['that ends half way, by STARTTLS', 'starttls', [...UP_TO_TLS, broken], {}],
  ];

  test.each(rows)('%s fails: nothing is said, and it is tried again', async (_what, tls, steps, options) => {
    expect(await send(tls, steps, options)).toMatchObject({ kind: 'retry_later', class: 'relay' });
    const { sessions } = await relay.heard();
    expect(sessions.flatMap(({ lines }) => lines).filter((line) => !/^(EHLO|STARTTLS)/.test(line))).toEqual([]);
  });

  test('with bytes of somebody else before it: the exchange ends', async () => {
    const injected = { expect: '^STARTTLS$', send: ['220 Go', '250-AUTH PLAIN', '250 Ok'], tls: 'localhost' };
    expect(await send('starttls', [...UP_TO_TLS, injected, EHLO])).toMatchObject({ code: 'smtp_out_of_step' });
    expect((await relay.heard()).sessions.flatMap(({ lines }) => lines)).toEqual(['EHLO api.example', 'STARTTLS']);
  });
});

describe('a relay that goes', () => {
  test.each([
    ['closes', { close: true }],
    ['breaks the line', { reset: true }],
  ])('and %s between the final dot and its answer: unknown (T3)', async (_what, step) => {
    expect(await send('implicit', [...UP_TO_DATA, { expect: 'BODY', takes: true, ...step }])).toMatchObject({
      kind: 'unknown',
      reason: 'transport_connection_lost',
    });
    expect((await relay.heard()).sessions).toMatchObject([{ taken: [[JO]] }]);
  });

  test('and says nothing any more behind the final dot: unknown, once the time is over', async () => {
    const result = await send('implicit', [...UP_TO_DATA, { expect: 'BODY', takes: true }], { deadline: 1_000 });
    expect(result).toMatchObject({ kind: 'unknown', reason: 'transport_timeout' });
  });

  test('and breaks the line in the middle of the message: nothing was sent (T2)', async () => {
    const mime = new TextEncoder().encode('0123456789\r\n'.repeat(400_000));
    const steps = [...UP_TO_DATA, { expect_body_bytes: 100_000, reset: true }];
    const result = await send('implicit', steps, { message: letter({ mime }) });
    expect(result).toMatchObject({ kind: 'retry_later', class: 'relay' });
  });

  test.each([
    ['a line of 1 MB', { raw: `250 ${'x'.repeat(1_048_576)}\r\n` }],
    ['a reply without end', { endless: `250-${'and so on '.repeat(300)}\r\n` }],
  ])('is what one with %s is for us', async (_what, step) => {
    const result = await send('implicit', [...LOGGED_IN, { expect: '^MAIL', ...step }]);
    expect(result).toMatchObject({ kind: 'retry_later', code: 'smtp_bad_reply' });
  });

  test('where nobody listens: tried again', async () => {
    expect(await send('implicit', ALL, { port: 9 })).toMatchObject({
      kind: 'retry_later',
      code: 'smtp_connect_failed',
    });
  });
});
