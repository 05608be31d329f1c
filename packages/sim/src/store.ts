import { createHash } from 'node:crypto';
import type { BlobStore } from '@pmail/engine/ports.ts';
import type { Process } from './process.ts';
import type { Universe } from './universe.ts';

/** An object store over the network, whose calls fail on either way and whose reads may bring the wrong bytes. */
export class SimStore {
  readonly objects = new Map<string, { bytes: Uint8Array; metadata: Record<string, string> }>();
  readonly #universe: Universe;

  constructor(universe: Universe) {
    this.#universe = universe;
  }

  for(process: Process): BlobStore {
    const { objects } = this;
    const call = <T>(label: string, effect: () => T): Promise<T> =>
      this.#universe.call(process, 'store', label, effect);
    const keysAfter = (prefix: string, after: string): string[] =>
      [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    return {
      put: (key, bytes, metadata) => {
        // What goes over a wire is what it was at the call.
        const sent = { bytes: Uint8Array.from(bytes), metadata: { ...metadata } };
        return call(`put ${key}`, () => {
          objects.set(key, sent);
        });
      },
      get: (key) => call(`get ${key}`, () => this.#read(key)),
      delete: (keys) =>
        call('delete', () => {
          for (const key of keys) objects.delete(key);
        }),
      list: (prefix, startAfter, limit) =>
        call('list', () => {
          const keys = keysAfter(prefix, startAfter);
          return { keys: keys.slice(0, limit), more: keys.length > limit };
        }),
      inspect: (prefix, startAfter, limit) =>
        call('inspect', () => {
          const keys = keysAfter(prefix, startAfter);
          const found = keys.slice(0, limit).flatMap((key) => {
            const object = objects.get(key);
            return object === undefined ? [] : [{ key, bytes: object.bytes.length, metadata: object.metadata }];
          });
          return { objects: found, more: keys.length > limit };
        }),
    };
  }

  /** Hash of what stands under a key, whatever a read would bring. */
  hashOf(key: string): string | null {
    const found = this.objects.get(key);
    return found === undefined ? null : createHash('sha256').update(found.bytes).digest('hex');
  }

  #read(key: string): Uint8Array | null {
    const found = this.objects.get(key);
    if (found === undefined) return null;
    if (key.includes('/out/') && this.#universe.chance('store_corrupt')) {
      this.#universe.log(`corrupt read: ${key}`);
      this.#universe.meet('T10');
      return this.#universe.random() < 0.5 ? null : Uint8Array.from([...found.bytes, 0x21]);
    }
    return Uint8Array.from(found.bytes);
  }
}
