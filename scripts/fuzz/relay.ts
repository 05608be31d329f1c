import { count, emptyReport, type Fuzzer, measured, type Verdict } from '@pmail/testkit/fuzz/fuzzer.ts';
import { fuzzRelay } from '@pmail/testkit/smtp/fuzz.ts';

type OneInput = (inputs: number, seed: number, from: number) => ReturnType<typeof fuzzRelay>;

/**
 * Random servers against the exchange with a relay, each held against a simple-minded reader of replies. Every fourth
 * input is replies alone. One at a time, so that the work of each is looked at.
 */
export function relayFuzzer(one: OneInput = fuzzRelay): Fuzzer {
  const name = 'relay exchanges';
  return {
    name,
    run: async ({ inputs, seed, work, before }) => {
      const report = emptyReport(name);
      for (let n = 0; n < inputs; n++) {
        before?.(seed, n + 1);
        try {
          count(report, verdict(await measured(report, work, () => one(1, seed, n))));
        } catch (error) {
          report.failure = { input: `number ${n}`, error: String(error), seed };
          return report;
        }
      }
      return report;
    },
  };
}

/** Taken are replies that are whole, and exchanges that got as far as the final dot. */
function verdict({ dots, ends, replies }: ReturnType<typeof fuzzRelay>): Verdict {
  if (dots > 0) return true;
  const [read] = Object.keys(replies);
  if (read !== undefined) return read === 'reply' || `reply: ${read}`;
  return `before the dot: ${Object.keys(ends)[0] ?? 'nothing'}`;
}

export const relayExchanges: Fuzzer = relayFuzzer();
