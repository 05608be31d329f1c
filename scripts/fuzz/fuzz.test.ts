import { fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FUZZERS } from './parsers.ts';

const OPTIONS = { inputs: 400, seed: 20_261_130, slow_ms: null };

describe('bytes of strangers', () => {
  it.each(FUZZERS.map((each) => [each.name, each] as const))(
    'break no rule of %s',
    async (_name, each) => {
      const report = await each.run(OPTIONS);
      expect(report.failure).toBeNull();
      expect(report.inputs).toBeGreaterThanOrEqual(OPTIONS.inputs);
      // A fuzzer whose inputs are all refused shows little.
      expect(report.taken).toBeGreaterThan(0);
      // Long inputs are work for a machine that does other things too.
    },
    60_000,
  );
});

describe('a fuzzer', () => {
  it('shows the smallest input that breaks a rule, and the seed that leads to it', async () => {
    const broken = fuzzer('x', fc.string(), (text) => {
      must(!text.includes('a'), 'no a');
      return true;
    });
    const { failure } = await broken.run({ ...OPTIONS, inputs: 5_000 });
    expect(failure).toMatchObject({ input: '"a"' });
    expect(failure?.error).toContain('no a');
  });

  it('runs kept inputs first', async () => {
    const kept = fuzzer('x', fc.constant('b'), (text) => text !== 'b' || true, ['a']);
    expect(await kept.run({ ...OPTIONS, inputs: 1 })).toMatchObject({ inputs: 2, failure: null });
  });
});
