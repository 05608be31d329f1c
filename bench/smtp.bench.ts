import type { OutgoingMessage } from '@pmail/core/transport/types.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { COMPOSE_CASES } from '@pmail/mime/compose-cases.ts';
import { Authority } from '@pmail/testkit/smtp/certificates.ts';
import { nodeSockets } from '@pmail/testkit/smtp/node-socket.ts';
import { Postfix } from '@pmail/testkit/smtp/postfix.ts';
import { systemClock } from '@pmail/transports/smtp/socket.ts';
import { smtpTransport } from '@pmail/transports/smtp/transport.ts';
import { createTransport } from 'nodemailer';
import { median } from './load.ts';

/**
 * Messages by a relay, four at a time, to one real Postfix that throws them away: our transport, which opens, secures and
 * closes a connection for each message; nodemailer in the same way; and nodemailer with a pool, which keeps its four
 * connections. The same message for all, in turns.
 */

const HOST = 'smtp.relay.example.net';
const LOGIN = { username: 'acme-desk', password: 'correct horse' };
const FROM = 'desk@acme.example.com';
const TO = 'jo@example.net';
const AT_ONCE = 4;
const MESSAGES = 200;
const ROUNDS = 5;

type Send = () => Promise<void>;

export async function run(): Promise<void> {
  if (!Postfix.isThere()) {
    console.log('postfix and sasl2-bin are not installed: nothing measured');
    return;
  }
  const authority = new Authority();
  const postfix = await Postfix.start({ authority, host: HOST, login: LOGIN, discard: true });
  const [example] = COMPOSE_CASES;
  if (example === undefined) throw new Error('no message');
  const { mime } = await createComposer().compose(example.input);
  const pooled = nodemailer(postfix, authority, true);
  const single = nodemailer(postfix, authority, false);
  const senders: [string, Send][] = [
    ['ours', ours(postfix, authority, mime)],
    ['single', () => single.send(mime)],
    ['pooled', () => pooled.send(mime)],
  ];
  try {
    for (const [, send] of senders) await rate(send, AT_ONCE * 5);
    const rounds: Record<string, number>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const rates: Record<string, number> = {};
      for (const [name, send] of senders) rates[name] = await rate(send, MESSAGES);
      rounds.push(rates);
      const text = senders.map(([name]) => `${rates[name]?.toFixed(0).padStart(5)} ${name}`);
      console.log(`  round ${round + 1}: ${text.join(', ')} messages/s`);
    }
    console.log(`message of ${mime.length} bytes, TLS from the first byte, ${AT_ONCE} at a time`);
    console.log(`rate: ours / nodemailer, a connection for each message ${ratio(rounds, 'single')}`);
    console.log(`rate: ours / nodemailer with its pool                  ${ratio(rounds, 'pooled')}`);
  } finally {
    pooled.close();
    single.close();
    postfix.stop();
  }
}

function ours(postfix: Postfix, authority: Authority, mime: Uint8Array): Send {
  const transport = smtpTransport({
    rules: { api_host: 'api.pmail.test', platform_domain: 'agents.pmail.test', allow_loopback: false },
    ehlo_name: 'api.pmail.test',
    relayOf: async () => ({ host: HOST, port: 465, ...LOGIN, probe_from: 'postmaster@acme.example.com' }),
    envelopeIdOf: async () => '01jd9q3v7m8x2c4n6b5k1r0e9t.00112233445566778899aabbccddeeff',
    resolve: async () => ['8.8.8.8'],
    requestDomainCheck: async () => {},
    open: nodeSockets({ ca: [authority.cert], at: () => ({ host: '127.0.0.1', port: postfix.submissions }) }),
    clock: systemClock,
  });
  const message: OutgoingMessage = {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    from: { address: FROM, name: 'Desk' },
    reply_to: null,
    to: [TO],
    cc: [],
    bcc: [],
    subject: '',
    text: null,
    html: null,
    headers: [],
    attachments: [],
    mime,
    journal_bcc: null,
  };
  return async () => {
    const result = await transport.send(message, 60_000);
    if (result.kind !== 'accepted') throw new Error(JSON.stringify(result));
  };
}

function nodemailer(postfix: Postfix, { cert }: Authority, pool: boolean) {
  const options = {
    host: '127.0.0.1',
    port: postfix.submissions,
    secure: true,
    auth: { user: LOGIN.username, pass: LOGIN.password },
    tls: { servername: HOST, ca: [cert] },
  };
  const transport = pool
    ? createTransport({ ...options, pool: true, maxConnections: AT_ONCE, maxMessages: Number.POSITIVE_INFINITY })
    : createTransport(options);
  return {
    send: async (mime: Uint8Array): Promise<void> => {
      await transport.sendMail({ envelope: { from: FROM, to: [TO] }, raw: Buffer.from(mime) });
    },
    close: () => transport.close(),
  };
}

/** Messages per second, so many of them, always four under way. */
async function rate(send: Send, count: number): Promise<number> {
  let left = count;
  const started = performance.now();
  const lane = async (): Promise<void> => {
    while (left-- > 0) await send();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return count / ((performance.now() - started) / 1_000);
}

/** The median of the rounds, and how far they lie apart. */
function ratio(rounds: Record<string, number>[], rival: string): string {
  const ratios = rounds.map((rates) => (rates['ours'] ?? 0) / (rates[rival] ?? 1));
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)];
  return `${median(ratios).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)} over ${ratios.length} rounds)`;
}
