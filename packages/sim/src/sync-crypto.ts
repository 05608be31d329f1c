import { createHash, createHmac } from 'node:crypto';

/**
 * Web Crypto answers from a thread pool, in an order that no seed decides. The simulator replaces the parts that the
 * engines use by the same functions computed at once.
 */
export function installSyncCrypto(): void {
  const keys = new WeakMap<object, Uint8Array>();
  const subtle = {
    digest: (_algorithm: string, data: Uint8Array) =>
      Promise.resolve(bufferOf(createHash('sha256').update(data).digest())),
    importKey: (_format: string, raw: Uint8Array) => {
      const key = { type: 'secret' };
      keys.set(key, raw);
      return Promise.resolve(key);
    },
    sign: (_algorithm: string, key: object, data: Uint8Array) =>
      Promise.resolve(
        bufferOf(
          createHmac('sha256', keys.get(key) ?? new Uint8Array(0))
            .update(data)
            .digest(),
        ),
      ),
  };
  Object.defineProperty(globalThis, 'crypto', { value: { subtle }, configurable: true });
}

function bufferOf(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
