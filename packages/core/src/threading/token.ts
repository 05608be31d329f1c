import { type Address, detailOf, withoutDetail } from '../address/address.ts';
import { equalBytes } from '../compare.ts';
import { hmacSha256, utf8 } from '../hash.ts';
import type { IdentityId } from '../ids.ts';

/**
 * The thread token of a Reply-To address: `{local}+t{kid}{seq}.{mac}@{domain}`. It says in which thread of which
 * identity an answer belongs, and only its holder of the key can make one. It files mail and grants nothing.
 */

/** Crockford's base32 in lower case: no i, l, o, u. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const SHAPE = /^t([0-9a-hjkmnp-tv-z])([1-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z]{0,11})\.([0-9a-hjkmnp-tv-z]{8})$/;
const LABEL = 'pm-thr';
const MAC_BYTES = 5;

export interface ThreadKey {
  /** One character of the token alphabet. */
  kid: string;
  /** 32 bytes. */
  secret: Uint8Array<ArrayBuffer>;
}

export type TokenCheck =
  /** No detail, or one of another shape: an ordinary tag. */
  { kind: 'absent' } | { kind: 'invalid' } | { kind: 'valid'; seq: number; kid: string };

function encode(value: bigint, length: number): string {
  let rest = value;
  let out = '';
  while (rest > 0n || out.length < length) {
    out = ALPHABET[Number(rest & 31n)] + out;
    rest >>= 5n;
  }
  return out;
}

/** MAC over label, version, key id, identity id and sequence number, 46 bytes with fixed places. */
async function mac(key: ThreadKey, identity: IdentityId, seq: bigint): Promise<Uint8Array> {
  const input = new Uint8Array(46);
  input.set(utf8(LABEL), 0);
  input[6] = 0x01;
  input.set(utf8(key.kid), 7);
  input.set(utf8(identity), 8);
  for (let i = 0; i < 8; i++) input[45 - i] = Number((seq >> BigInt(8 * i)) & 0xffn);
  return (await hmacSha256(key.secret, input)).subarray(0, MAC_BYTES);
}

function macText(bytes: Uint8Array): string {
  return encode(
    bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n),
    8,
  );
}

/**
 * @param identity as stored, `idn_` and an upper-case ULID, 30 characters
 * @param seq the thread's number, from 1
 */
export async function mintThreadToken(key: ThreadKey, identity: IdentityId, seq: number): Promise<string> {
  if (!Number.isSafeInteger(seq) || seq < 1) throw new Error('a thread number is a positive integer');
  const number = BigInt(seq);
  return `t${key.kid}${encode(number, 1)}.${macText(await mac(key, identity, number))}`;
}

/** Key id that a detail names, or undefined when it has not the shape of a token at all. */
export function tokenKid(detail: string): string | undefined {
  return SHAPE.exec(detail)?.[1];
}

/** The address that a thread token was put into; any other comes back unchanged, with its tag. */
export function withoutToken(address: Address): Address {
  const detail = detailOf(address);
  return detail === null || tokenKid(detail) === undefined ? address : withoutDetail(address);
}

/** Checks the detail of an envelope recipient (what stands between the first `+` and the `@`, lower case). */
export async function checkThreadToken(
  keys: readonly ThreadKey[],
  identity: IdentityId,
  detail: string,
): Promise<TokenCheck> {
  const match = SHAPE.exec(detail);
  if (match === null) return { kind: 'absent' };
  const [, kid = '', digits = '', presented = ''] = match;
  const key = keys.find((entry) => entry.kid === kid);
  const seq = Array.from(digits).reduce((value, digit) => value * 32n + BigInt(ALPHABET.indexOf(digit)), 0n);
  if (key === undefined || seq > BigInt(Number.MAX_SAFE_INTEGER)) return { kind: 'invalid' };
  const expected = macText(await mac(key, identity, seq));
  return equalBytes(utf8(expected), utf8(presented)) ? { kind: 'valid', seq: Number(seq), kid } : { kind: 'invalid' };
}
