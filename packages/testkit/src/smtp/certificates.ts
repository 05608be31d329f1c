import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A certificate authority for tests, made of nothing but node: X.509 v3 (RFC 5280) with ECDSA over P-256. */

export interface Certificate {
  cert: string;
  key: string;
}

export interface CertificateOptions {
  /** DNS names the certificate is for. */
  names: string[];
  /** IPv4 addresses it is for. */
  addresses?: string[];
  /** How long it is still valid, in days; less than nothing when it no longer is. */
  days?: number;
}

export class Authority {
  /** Its own certificate, for those who are to trust it. */
  readonly cert: string;
  readonly #key: KeyObject;
  readonly #name: Buffer;

  /** @param kept what `keep` gave, to go on with an authority of another process */
  constructor(name = 'Test authority', kept?: string) {
    this.#name = nameOf(name);
    if (kept !== undefined) {
      const { cert, key } = JSON.parse(kept) as Certificate;
      this.cert = cert;
      this.#key = createPrivateKey(key);
      return;
    }
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    const extensions = [
      extension('2.5.29.19', true, sequence(BOOLEAN_TRUE)),
      // keyCertSign
      extension('2.5.29.15', true, der(0x03, Buffer.of(0x02, 0x04))),
    ];
    this.cert = this.#issue(this.#name, publicKey, extensions, 3_650);
  }

  keep(): string {
    return JSON.stringify({ cert: this.cert, key: pem(this.#key) });
  }

  /** A certificate for a server and its key. */
  issue({ names, addresses = [], days = 30 }: CertificateOptions): Certificate {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const alternatives = [
      ...names.map((name) => der(0x82, Buffer.from(name, 'latin1'))),
      ...addresses.map((address) => der(0x87, Buffer.from(address.split('.').map(Number)))),
    ];
    const extensions = [
      extension('2.5.29.19', true, sequence()),
      extension('2.5.29.17', false, sequence(...alternatives)),
      // serverAuth
      extension('2.5.29.37', false, sequence(objectId('1.3.6.1.5.5.7.3.1'))),
    ];
    const cert = this.#issue(nameOf(names[0] ?? 'Test server'), publicKey, extensions, days);
    return { cert, key: pem(privateKey) };
  }

  #issue(subject: Buffer, key: KeyObject, extensions: Buffer[], days: number): string {
    const day = 86_400_000;
    const ends = Date.now() + days * day;
    const toBeSigned = sequence(
      der(0xa0, integer(Buffer.of(2))),
      integer(Buffer.concat([Buffer.of(0x40), randomBytes(8)])),
      sequence(ECDSA_SHA256),
      this.#name,
      sequence(time(Math.min(Date.now(), ends) - day), time(ends)),
      subject,
      createPublicKey(key.export({ type: 'spki', format: 'pem' })).export({ type: 'spki', format: 'der' }),
      der(0xa3, sequence(...extensions)),
    );
    const signature = sign('sha256', toBeSigned, this.#key);
    const whole = sequence(toBeSigned, sequence(ECDSA_SHA256), der(0x03, Buffer.concat([Buffer.of(0), signature])));
    const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
  }
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Tag, length, value (X.690). */
function der(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), value]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function integer(value: Buffer): Buffer {
  return der(0x02, value);
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

const BOOLEAN_TRUE = der(0x01, Buffer.of(0xff));
const ECDSA_SHA256 = objectId('1.2.840.10045.4.3.2');

function nameOf(common: string): Buffer {
  return sequence(der(0x31, sequence(objectId('2.5.4.3'), der(0x0c, Buffer.from(common, 'utf8')))));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(objectId(id), ...(critical ? [BOOLEAN_TRUE] : []), der(0x04, value));
}

/** UTCTime, for the years up to 2049 (RFC 5280 section 4.1.2.5). */
function time(at: number): Buffer {
  const text = new Date(at).toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(text.slice(2), 'latin1'));
}
