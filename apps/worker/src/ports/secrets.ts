import type { Address } from '@pmail/core/address/address.ts';
import { importHmacKey, signHmac, toHex } from '@pmail/core/hash.ts';

/** HMACs with the deployment's secrets. Keys are imported once per isolate. */

const imported = new WeakMap<Uint8Array, Promise<CryptoKey>>();

function keyOf(secret: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  let key = imported.get(secret);
  if (key === undefined) {
    key = importHmacKey(secret);
    imported.set(secret, key);
  }
  return key;
}

export async function hmac(secret: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> {
  return signHmac(await keyOf(secret), text);
}

/** Hex HMAC under which an address is stored where it must not be readable: suppressions, tombstones, logs. */
export async function hashAddress(hashKey: Uint8Array<ArrayBuffer>, address: Address): Promise<string> {
  return toHex(await hmac(hashKey, address));
}
