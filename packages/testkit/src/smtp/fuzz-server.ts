import type { Exchange, ExchangeEvent } from '@pmail/core/smtp/exchange-types.ts';

/** Random numbers from a seed (mulberry32), so that every input can be made again. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  /** True once in `n` times. */
  once(n: number): boolean {
    return this.next() * n < 1;
  }
}

/** Replies that a server gives when it is well, by what is waited for. */
const GOOD: { [S in Exchange['step']]?: readonly string[] } = {
  greeting: ['220 mail.example.net ESMTP\r\n', '220\r\n', '220-a\r\n220 b\r\n'],
  ehlo: [
    '250-mail.example.net\r\n250-STARTTLS\r\n250-SIZE 35882577\r\n250 AUTH PLAIN LOGIN\r\n',
    '250-mail.example.net\r\n250-starttls\r\n250 auth=login\r\n',
    '250-x\r\n250-AUTH CRAM-MD5 PLAIN\r\n250-DSN\r\n250 STARTTLS\r\n',
  ],
  starttls: ['220 2.0.0 Ready\r\n', '220\r\n'],
  ehlo_secure: ['250-x\r\n250-AUTH LOGIN PLAIN\r\n250-SIZE\r\n250 DSN\r\n', '250-x\r\n250 AUTH LOGIN\r\n'],
  auth: ['235 2.7.0 Ok\r\n', '334 VXNlcm5hbWU6\r\n', '334 \r\n', '235\r\n'],
  mail: ['250 2.1.0 Ok\r\n', '250\r\n'],
  rcpt: ['250 2.1.5 Ok\r\n', '251 2.1.5 Forward\r\n', '550 5.1.1 No\r\n', '451 4.7.1 Later\r\n'],
  data: ['354 Go\r\n', '354\r\n'],
  dot: ['250 2.0.0 Ok\r\n', '250\r\n', '451 4.3.0 Later\r\n', '554 5.7.1 No\r\n'],
  rset: ['250 Ok\r\n'],
  quit: ['221 Bye\r\n'],
};

const CODES = ['220', '221', '235', '250', '251', '334', '354', '421', '432', '450', '451', '454', '500', '504', '530'];
const MORE_CODES = ['534', '535', '550', '552', '554', '150', '199', '399', '299', '600', '000', '25', '2500', '535'];
const WORDS = [
  'Ok',
  '5.7.4',
  '5.7.8',
  '4.7.0',
  '2.0.0',
  'x',
  '-',
  'é',
  '\0',
  '\r',
  '5.1.1',
  'AUTH PLAIN',
  'DSN',
  'STARTTLS',
  '',
];
const NOISE = [
  '\r\n',
  '\n',
  '\r',
  '\r\n\r\n',
  '.',
  '250',
  '250-',
  '2',
  'HTTP/1.1 400\r\n',
  '\x16\x03\x01\x02',
  '\xc3',
  '\xff\xfe',
];

/** How seldom a server of some temper misbehaves: once in so many times. Patient ones let the exchange come far. */
export const TEMPERS = [2, 6, 20, 60] as const;

/** What a server does next to a client that is in `exchange`, and has last said `line`. */
export function nextEvent(chance: Chance, temper: number, exchange: Exchange, line: string): ExchangeEvent {
  // The answer to the final dot is where a lie would cost most.
  if (!chance.once(exchange.step === 'dot' ? 2 : temper)) return wellBehaved(chance, exchange);
  const roll = chance.next();
  if (roll < 0.7) return { kind: 'received', bytes: latin1(oddReply(chance, exchange, line)) };
  if (roll < 0.8) return { kind: chance.pick(['closed', 'failed']) };
  if (roll < 0.9) return { kind: 'timeout', of: chance.pick(['step', 'exchange']) };
  return { kind: chance.pick(['connected', 'secured', 'body_progress', 'body_written']) };
}

function wellBehaved(chance: Chance, { step }: Exchange): ExchangeEvent {
  if (step === 'connect') return { kind: 'connected' };
  if (step === 'tls') return { kind: 'secured' };
  if (step === 'body') return { kind: chance.once(3) ? 'body_progress' : 'body_written' };
  return { kind: 'received', bytes: latin1(chance.pick(GOOD[step] ?? ['250 Ok\r\n'])) };
}

function oddReply(chance: Chance, { step }: Exchange, line: string): string {
  const good = chance.pick(GOOD[step] ?? ['250 Ok\r\n']);
  switch (chance.below(9)) {
    case 0:
      return reply(chance);
    case 1:
      // Cut somewhere.
      return good.slice(0, chance.below(good.length + 1));
    case 2:
      // More than was asked for.
      return good + reply(chance).slice(0, chance.below(12));
    case 3:
      return chance.pick(NOISE) + (chance.once(2) ? good : '');
    case 4:
      // Says again what it heard.
      return `${chance.pick(CODES)} ${line}\r\n`;
    case 5:
      return `${chance.pick(CODES)}-${'x'.repeat(chance.below(5_000))}`;
    case 6:
      return `${chance.pick(CODES)}-\r\n`.repeat(chance.below(140));
    case 7:
      return Array.from({ length: chance.below(40) }, () => String.fromCharCode(chance.below(256))).join('');
    default:
      return `${chance.pick(CODES)}-a\r\n${chance.pick(CODES)} b\r\n`;
  }
}

/** A reply of one line or of several, mostly well formed. */
export function reply(chance: Chance): string {
  const code = chance.once(4) ? chance.pick(MORE_CODES) : chance.pick(CODES);
  const lines = chance.once(3) ? 1 + chance.below(4) : 1;
  let text = '';
  for (let n = 1; n <= lines; n++) {
    const words = Array.from({ length: chance.below(4) }, () => chance.pick(WORDS)).join(' ');
    const separator = n < lines ? '-' : words === '' && chance.once(2) ? '' : ' ';
    text += `${code}${separator}${words}${chance.once(20) ? '\n' : '\r\n'}`;
  }
  return text;
}

export function latin1(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'latin1'));
}
