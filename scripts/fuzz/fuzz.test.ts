import { describe, expect, it } from 'vitest';
import { FUZZERS } from './parsers.ts';

const OPTIONS = { inputs: 400, seed: 20_261_130, work: null };

describe('bytes of strangers', () => {
  it.each(FUZZERS.map((each) => [each.name, each] as const))(
    'break no rule of %s',
    async (_name, each) => {
      const { failure, inputs, taken } = await each.run(OPTIONS);
      expect(failure).toBeNull();
      expect(inputs).toBe(OPTIONS.inputs);
      // A fuzzer whose inputs are all refused shows little, and so does one whose inputs are all taken.
      expect(taken).toBeGreaterThan(0);
      expect(taken).toBeLessThan(inputs);
      // Long inputs are work for a machine that does other things too.
    },
    120_000,
  );
});
