/** API keys: `pmk_{live|test}_{lookup}_{secret}`. Only a keyed hash of the whole is stored. */

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const KEY = /^pmk_(live|test)_([0-9a-hjkmnp-tv-z]{12})_([0-9a-hjkmnp-tv-z]{52})$/;

export interface ParsedKey {
  mode: 'live' | 'test';
  lookup: string;
}

/** Parts of a key that has the right form; the form alone proves nothing. */
export function parseApiKey(text: string): ParsedKey | undefined {
  const match = KEY.exec(text);
  if (match === null) return undefined;
  const [, mode, lookup = ''] = match;
  return { mode: mode as ParsedKey['mode'], lookup };
}

/**
 * A new key.
 *
 * @param entropy 40 random bytes: 60 bits become the lookup, 256 bits the secret
 */
export function makeApiKey(
  mode: 'live' | 'test',
  entropy: Uint8Array,
  lookup?: string,
): { key: string; lookup: string } {
  const name = lookup ?? base32(entropy.subarray(0, 8), 12);
  return { key: `pmk_${mode}_${name}_${base32(entropy.subarray(8, 40), 52)}`, lookup: name };
}

function base32(bytes: Uint8Array, length: number): string {
  let bits = 0n;
  for (const byte of bytes) bits = (bits << 8n) | BigInt(byte);
  let out = '';
  for (let i = 0; i < length; i++) {
    out = ALPHABET[Number(bits & 31n)] + out;
    bits >>= 5n;
  }
  return out;
}
