import { expect, test } from 'vitest';
import { fuzzRelay } from './fuzz.ts';

/** A part of what `npm run fuzz` does; the whole is a million inputs. */

const INPUTS = 20_000;
const SEED = 4_471;

test(`no server makes the exchange with a relay say what is not true (${INPUTS} inputs, seed ${SEED})`, () => {
  const { ends, dots, replies } = fuzzRelay(INPUTS, SEED);
  // The inputs are worth something only when every end is among them.
  for (const kind of ['accepted', 'rejected', 'retry_later', 'unknown']) {
    expect(ends[kind], kind).toBeGreaterThan(INPUTS / 200);
  }
  for (const kind of ['reply', 'more', 'fault']) expect(replies[kind], kind).toBeGreaterThan(INPUTS / 200);
  expect(dots).toBeGreaterThan(INPUTS / 20);
});

test('the same seed is the same run', () => {
  expect(fuzzRelay(500, 7)).toEqual(fuzzRelay(500, 7));
});
