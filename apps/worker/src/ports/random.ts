import { createIdFactory } from '@pmail/core/ids.ts';

/** Chance from the platform's cryptographic source, in [0, 1). */
export function random(): number {
  const [value = 0] = crypto.getRandomValues(new Uint32Array(1));
  return value / 2 ** 32;
}

/** Ids of this isolate, rising within a millisecond. */
export const newId = createIdFactory(random);
