import type { BlobStore } from '@pmail/engine/ports.ts';

/** The object store port over R2. */
export function r2(bucket: R2Bucket): BlobStore {
  return {
    put: async (key, bytes, customMetadata) => {
      await bucket.put(key, bytes, { customMetadata });
    },
    get: async (key) => {
      const object = await bucket.get(key);
      return object === null ? null : new Uint8Array(await object.arrayBuffer());
    },
    delete: async (keys) => {
      // R2 takes at most 1,000 keys a call.
      for (let i = 0; i < keys.length; i += 1_000) await bucket.delete(keys.slice(i, i + 1_000));
    },
    list: async (prefix, startAfter, limit) => {
      const page = await bucket.list({ prefix, startAfter, limit });
      return { keys: page.objects.map(({ key }) => key), more: page.truncated };
    },
    inspect: async (prefix, startAfter, limit) => {
      const page = await bucket.list({ prefix, startAfter, limit, include: ['customMetadata'] });
      const objects = page.objects.map(({ key, size, customMetadata }) => ({
        key,
        bytes: size,
        metadata: customMetadata ?? {},
      }));
      return { objects, more: page.truncated };
    },
  };
}
