/** Certificates for tests (RFC 5280): an authority, and what it has signed. Made anew in each run. */

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } as const;

export interface Certified {
  pem: string;
  key: CryptoKey;
}

interface Validity {
  from: number;
  to: number;
}

function length(n: number): number[] {
  if (n < 0x80) return [n];
  return n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff];
}

function der(tag: number, ...parts: (Uint8Array | number[])[]): Uint8Array<ArrayBuffer> {
  const content = parts.flatMap((part) => [...part]);
  return Uint8Array.from([tag, ...length(content.length), ...content]);
}

const SHA256_WITH_RSA = der(0x30, [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b], [0x05, 0x00]);

function name(common: string): Uint8Array {
  return der(0x30, der(0x31, der(0x30, [0x06, 0x03, 0x55, 0x04, 0x03], der(0x0c, new TextEncoder().encode(common)))));
}

function time(ms: number): Uint8Array {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x18, new TextEncoder().encode(text));
}

async function pair(): Promise<CryptoKeyPair> {
  const made = await crypto.subtle.generateKey(
    { ...ALGORITHM, modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1) },
    true,
    ['sign', 'verify'],
  );
  return made as CryptoKeyPair;
}

/** A certificate for a new key, signed by an authority made for it. */
export async function certify(subject: string, validity: Validity): Promise<Certified> {
  const authority = await pair();
  const own = await pair();
  const spki = new Uint8Array((await crypto.subtle.exportKey('spki', own.publicKey)) as ArrayBuffer);
  const body = der(
    0x30,
    der(0xa0, [0x02, 0x01, 0x02]),
    [0x02, 0x01, 0x2a],
    SHA256_WITH_RSA,
    name('Test authority'),
    der(0x30, time(validity.from), time(validity.to)),
    name(subject),
    spki,
  );
  const signature = new Uint8Array(await crypto.subtle.sign(ALGORITHM.name, authority.privateKey, body));
  const certificate = der(0x30, body, SHA256_WITH_RSA, der(0x03, [0], signature));
  const base64 = btoa(String.fromCharCode(...certificate)).replace(/.{64}/g, '$&\n');
  return { pem: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`, key: own.privateKey };
}

/** Signs a text as SNS does. */
export async function signText(key: CryptoKey, text: string): Promise<string> {
  const signature = await crypto.subtle.sign(ALGORITHM.name, key, new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}
