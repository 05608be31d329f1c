import type { Fuzzer } from '@pmail/testkit/fuzz/fuzzer.ts';
import { fuzzRelay } from '@pmail/testkit/smtp/fuzz.ts';

const PART = 50_000;

/** Random servers against the exchange with a relay, each held against a simple-minded reader of replies. */
export const relayExchanges: Fuzzer = {
  name: 'relay exchanges',
  run: ({ inputs, seed }) => {
    const report = { name: 'relay exchanges', inputs: 0, taken: 0, slowest_ms: 0, failure: null };
    try {
      for (let from = 0; from < inputs; from += PART) {
        const started = performance.now();
        const part = fuzzRelay(Math.min(PART, inputs - from), seed, from);
        report.inputs += part.inputs;
        // Those that got as far as the final dot.
        report.taken += part.dots;
        report.slowest_ms = Math.max(report.slowest_ms, (performance.now() - started) / part.inputs);
      }
      return Promise.resolve(report);
    } catch (error) {
      return Promise.resolve({ ...report, failure: { input: 'its number follows', error: String(error), seed } });
    }
  },
};
