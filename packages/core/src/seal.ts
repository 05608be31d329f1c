import { fromBase64Url, sha256, toBase64Url, toHex, utf8 } from './hash.ts';

/**
 * Sealing of secrets at rest: `pm1.{kid}.{nonce}.{ciphertext}` with AES-256-GCM. The key id is the start of the key's
 * hash, so a value says which key opens it; table, column and row are bound in, so a value moved elsewhere does not open.
 */

export interface SealPlace {
  table: string;
  column: string;
  row: string;
}

function aad({ table, column, row }: SealPlace): Uint8Array<ArrayBuffer> {
  return utf8(`pm1|${table}|${column}|${row}`);
}

async function keyId(key: Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex((await sha256(key)).subarray(0, 8));
}

/**
 * @param key 32 bytes
 * @param nonce 12 fresh random bytes; never the same twice under one key
 */
export async function seal(
  key: Uint8Array<ArrayBuffer>,
  place: SealPlace,
  secret: Uint8Array<ArrayBuffer>,
  nonce: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'AES-GCM' }, false, ['encrypt']);
  const sealed = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv: nonce, additionalData: aad(place) },
    imported,
    secret,
  );
  return `pm1.${await keyId(key)}.${toBase64Url(nonce)}.${toBase64Url(new Uint8Array(sealed))}`;
}

/**
 * Opens a sealed value with whichever of the keys sealed it.
 *
 * @returns undefined when none did, or when the value was changed or belongs elsewhere
 */
export async function unseal(
  keys: readonly Uint8Array<ArrayBuffer>[],
  place: SealPlace,
  sealed: string,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const [version, kid, nonceText = '', text = '', ...rest] = sealed.split('.');
  const nonce = fromBase64Url(nonceText);
  const ciphertext = fromBase64Url(text);
  if (version !== 'pm1' || nonce?.length !== 12 || ciphertext === undefined || rest.length > 0) return undefined;
  for (const key of keys) {
    if ((await keyId(key)) !== kid) continue;
    try {
      const imported = await crypto.subtle.importKey('raw', key, { name: 'AES-GCM' }, false, ['decrypt']);
      const params = { name: 'AES-GCM', iv: nonce, additionalData: aad(place) };
      return new Uint8Array(await crypto.subtle.decrypt(params, imported, ciphertext));
    } catch {
      return undefined;
    }
  }
  return undefined;
}
