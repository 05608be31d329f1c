import { createComposer } from '@pmail/mime/compose.ts';
import { COMPOSE_CASES } from '@pmail/mime/compose-cases.ts';
import { Authority } from '@pmail/testkit/smtp/certificates.ts';
import { nodeSockets } from '@pmail/testkit/smtp/node-socket.ts';
import { Postfix } from '@pmail/testkit/smtp/postfix.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOST, JO, KIM, LOGIN, letter, rig } from './relay.fixture.ts';
import { systemClock } from './socket.ts';
import { smtpTransport } from './transport.ts';

/** The relay transport against a real Postfix. */

const GONE = 'gone@example.net';
const GREY = 'grey@example.net';
const SIZE_MAX = 2_000_000;

let authority: Authority;
let postfix: Postfix;

beforeAll(async () => {
  authority = new Authority();
  postfix = await Postfix.start({
    authority,
    host: HOST,
    login: LOGIN,
    size_max: SIZE_MAX,
    answers: { [GONE]: '550 5.1.1 No such user here', [GREY]: '450 4.2.0 Greylisted, come back later' },
  });
}, 60_000);
afterAll(() => postfix?.stop());

type Port = 465 | 587;

function send(port: Port, message: ReturnType<typeof letter>, login = LOGIN, host = HOST) {
  const { ports } = rig([]);
  const real = port === 465 ? postfix.submissions : postfix.submission;
  const transport = smtpTransport({
    ...ports,
    relayOf: async () => ({ host, port, ...login, probe_from: 'postmaster@acme.example.com' }),
    open: nodeSockets({ ca: [authority.cert], at: () => ({ host: '127.0.0.1', port: real }) }),
    clock: systemClock,
  });
  return transport.send(message, 60_000);
}

/** What Postfix has written on top of a message, header by header, and the message itself. */
function apart(delivered: string, mime: Uint8Array): { trace: string[]; rest: string } {
  const own = Buffer.from(mime).toString('latin1');
  const at = delivered.length - own.length;
  const trace = delivered.slice(0, at).replace(/\r\n[ \t]+/g, ' ');
  return { trace: [...trace.matchAll(/^([\w-]+):/gm)].map(([, name = '']) => name), rest: delivered.slice(at) };
}

let people = 0;
const somebody = (): string => `p${++people}@example.net`;

describe.each<[string, Port]>([
  ['with TLS from the first byte', 465],
  ['by STARTTLS', 587],
])('a message %s', (_what, port) => {
  test.each(COMPOSE_CASES)('arrives byte for byte: $name', async ({ input }) => {
    const { mime } = await createComposer().compose(input);
    const to = somebody();
    expect(await send(port, letter({ to: [to], mime }))).toMatchObject({ kind: 'accepted', refused: [], deferred: [] });
    const [delivered = ''] = await postfix.until(to, 1);
    const { trace, rest } = apart(delivered, mime);
    expect(rest).toBe(Buffer.from(mime).toString('latin1'));
    expect(new Set(trace)).toEqual(new Set(['Return-Path', 'X-Original-To', 'Delivered-To', 'Received']));
  });

  test.each([
    ['dots at the start of lines', '.\r\n..\r\n...x\r\n.x\r\n\r\n.\r\n'],
    ['a dot alone at the end', 'x\r\n.\r\n'],
    ['bytes beyond ASCII', 'Größe €\r\n'],
    ['a megabyte', `${'0123456789abcdef'.repeat(4)}\r\n`.repeat(16_000)],
  ])('arrives byte for byte: %s', async (_name, body) => {
    const mime = new TextEncoder().encode(
      `From: desk@acme.example.com\r\nDate: Mon, 30 Nov 2026 09:00:00 +0000\r\nMessage-ID: <x@y>\r\n\r\n${body}`,
    );
    const to = somebody();
    expect(await send(port, letter({ to: [to], mime }))).toMatchObject({ kind: 'accepted' });
    const [delivered = ''] = await postfix.until(to, 1);
    expect(apart(delivered, mime).rest).toBe(Buffer.from(mime).toString('latin1'));
  });

  test('goes to those whom it takes; the refused and the greylisted one are named (T4)', async () => {
    const to = somebody();
    expect(await send(port, letter({ to: [GONE, to], cc: [GREY], bcc: [KIM] }))).toMatchObject({
      kind: 'accepted',
      refused: [{ address: GONE, smtp_code: '550', enhanced_code: '5.1.1' }],
      deferred: [GREY],
    });
    await postfix.until(to, 1);
    await postfix.until(KIM, port === 465 ? 1 : 2);
    expect([postfix.mailbox(GONE), postfix.mailbox(GREY)]).toEqual([[], []]);
  });

  test('for nobody but the refused is rejected, for nobody but the greylisted is put off', async () => {
    expect(await send(port, letter({ to: [GONE] }))).toMatchObject({ kind: 'rejected', code: '550' });
    expect(await send(port, letter({ to: [GREY] }))).toMatchObject({ kind: 'retry_later', code: '450', refused: [] });
    expect(await send(port, letter({ to: [GREY, GONE] }))).toMatchObject({
      kind: 'retry_later',
      code: '450',
      refused: [{ address: GONE }],
    });
  });

  test('that is too large is refused at once, by its size alone', async () => {
    const mime = new TextEncoder().encode(`Subject: x\r\n\r\n${`${'x'.repeat(70)}\r\n`.repeat(30_000)}`);
    expect(mime.length).toBeGreaterThan(SIZE_MAX);
    expect(await send(port, letter({ to: [JO], mime }))).toMatchObject({
      kind: 'rejected',
      reason: 'provider_validation',
      code: '552',
      refused: [{ address: JO, smtp_code: '552', enhanced_code: '5.3.4' }],
    });
  });

  test('with a wrong password is rejected for the domain', async () => {
    const wrong = { ...LOGIN, password: 'wrong' };
    expect(await send(port, letter(), wrong)).toMatchObject({
      kind: 'rejected',
      reason: 'sender_domain_unavailable',
      code: '535',
    });
  });

  test('for a host of another name is not sent', async () => {
    const result = await send(port, letter(), LOGIN, 'smtp.other.example.net');
    expect(result).toMatchObject({
      kind: 'retry_later',
      code: port === 465 ? 'smtp_connect_failed' : 'smtp_tls_failed',
    });
  });
});
