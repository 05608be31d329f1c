import { Authority } from '@pmail/testkit/smtp/certificates.ts';
import { nodeSockets } from '@pmail/testkit/smtp/node-socket.ts';
import { RelayServer } from '@pmail/testkit/smtp/relay-server.ts';
import { unstuffed } from '@pmail/testkit/smtp/script.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ALL,
  AUTH,
  EHLO,
  HOST,
  LOGGED_IN,
  letter,
  rig,
  STARTTLS,
  script,
  UP_TO_DATA,
  UP_TO_TLS,
} from './relay.fixture.ts';
import { systemClock } from './socket.ts';
import { smtpTransport } from './transport.ts';

/** The same exchange over real sockets with real TLS. */

let authority: Authority;
let server: RelayServer;

beforeAll(async () => {
  authority = new Authority();
  server = await RelayServer.start(authority);
});
afterAll(() => server.stop());

const SECURE = [...UP_TO_TLS, STARTTLS, EHLO, ...ALL.slice(2)];

/** Sends to the server, which plays a script, and trusts an authority. */
async function send(play: ReturnType<typeof script>, message = letter(), trusted = authority.cert) {
  server.play(play);
  const { ports } = rig([play]);
  const open = nodeSockets({ ca: [trusted], at: () => ({ host: '127.0.0.1', port: server.port }) });
  return smtpTransport({ ...ports, open, clock: systemClock }).send(message, 20_000);
}

describe('a message over real TLS', () => {
  test.each([
    ['from the first byte', script(...ALL)],
    ['by STARTTLS', script(...SECURE)],
  ])('%s arrives', async (_what, play) => {
    expect(await send(play)).toMatchObject({ kind: 'accepted' });
    expect(server.player.mismatch).toBeNull();
    expect(server.player.bodies.map((body) => new Uint8Array(unstuffed(body)))).toEqual([letter().mime]);
  });

  test('of five megabytes arrives as it is', async () => {
    const mime = new TextEncoder().encode(`Subject: x\r\n\r\n${`.${'0123456789'.repeat(7)}\r\n`.repeat(70_000)}`);
    expect(await send(script(...SECURE), letter({ mime }))).toMatchObject({ kind: 'accepted' });
    const [body] = server.player.bodies;
    expect(Buffer.compare(unstuffed(body ?? Buffer.alloc(0)), Buffer.from(mime))).toBe(0);
  });

  test('byte by byte is understood', async () => {
    const bytewise = script(...ALL.map((step) => ({ ...step, bytewise: true })));
    expect(await send(bytewise)).toMatchObject({ kind: 'accepted' });
  });
});

describe('a handshake', () => {
  const connect = 'smtp_connect_failed';
  const later = 'smtp_tls_failed';
  const named = (tls: string) => ({ ...STARTTLS, tls });

  test.each([
    ['with a certificate for another name', script({ tls: 'other.example.net' }, ...ALL), connect],
    ['with a certificate for another name, by STARTTLS', script(...UP_TO_TLS, named('other.example.net')), later],
    ['with a certificate for a name above', script({ tls: 'relay.example.net' }, ...ALL), connect],
    ['that ends half way', script({ broken_tls: true }), connect],
    [
      'that ends half way, by STARTTLS',
      script(...UP_TO_TLS, { expect: '^STARTTLS$', send: ['220 Go'], broken_tls: true }),
      later,
    ],
  ])('%s fails, and nothing is said', async (_what, play, code) => {
    expect(await send(play)).toMatchObject({ kind: 'retry_later', class: 'relay', code });
    expect(server.player.lines.filter((line) => !/^(EHLO|STARTTLS)/.test(line))).toEqual([]);
  });

  test('with a certificate of an authority that is not trusted fails, and nothing is said', async () => {
    const stranger = new Authority('Stranger').cert;
    expect(await send(script(...ALL), letter(), stranger)).toMatchObject({ kind: 'retry_later', code: connect });
    expect(await send(script(...SECURE), letter(), stranger)).toMatchObject({ kind: 'retry_later', code: later });
    expect(server.player.lines.some((line) => line.startsWith('AUTH'))).toBe(false);
  });

  test('with bytes of somebody else before it: the exchange ends, and nothing is said', async () => {
    const injected = { expect: '^STARTTLS$', send: ['220 Go', '250-AUTH PLAIN', '250 Ok'], tls: HOST };
    const result = await send(script(...UP_TO_TLS, injected, EHLO, AUTH));
    expect(result).toMatchObject({ kind: 'retry_later', code: 'smtp_out_of_step' });
    expect(server.player.lines).toEqual(['EHLO api.pmail.test', 'STARTTLS']);
  });
});

describe('a relay that goes', () => {
  test.each([
    ['closes', { close: true }],
    ['breaks the line', { reset: true }],
  ])('and %s between the final dot and its answer: unknown (T3)', async (_what, step) => {
    expect(await send(script(...UP_TO_DATA, { expect: 'BODY', takes: true, ...step }))).toMatchObject({
      kind: 'unknown',
      reason: 'transport_connection_lost',
    });
    expect(server.player.taken).toHaveLength(1);
  });

  test('and breaks the line in the middle of the message: nothing was sent (T2)', async () => {
    const mime = new TextEncoder().encode('0123456789\r\n'.repeat(400_000));
    const play = script(...UP_TO_DATA, { expect_body_bytes: 100_000, reset: true });
    expect(await send(play, letter({ mime }))).toMatchObject({ kind: 'retry_later', code: 'smtp_connection_lost' });
  });

  test('before its greeting: tried again', async () => {
    expect(await send(script({ expect: '^$connect', close: true }))).toMatchObject({ kind: 'retry_later' });
  });

  test('with a reply without end: hung up on', async () => {
    const play = script(...LOGGED_IN, { expect: '^MAIL', endless: `250-${'and so on '.repeat(300)}\r\n` });
    expect(await send(play)).toMatchObject({ kind: 'retry_later', code: 'smtp_bad_reply' });
  });

  test('with a line of 1 MB: hung up on', async () => {
    const play = script(...LOGGED_IN, { expect: '^MAIL', raw: `250 ${'x'.repeat(1_048_576)}\r\n` });
    expect(await send(play)).toMatchObject({ kind: 'retry_later', code: 'smtp_bad_reply' });
  });

  test('where nobody listens: tried again', async () => {
    const gone = await RelayServer.start(authority);
    await gone.stop();
    const { ports } = rig([]);
    const open = nodeSockets({ ca: [authority.cert], at: () => ({ host: '127.0.0.1', port: gone.port }) });
    const result = await smtpTransport({ ...ports, open, clock: systemClock }).send(letter(), 20_000);
    expect(result).toMatchObject({ kind: 'retry_later', code: 'smtp_connect_failed' });
  });
});
