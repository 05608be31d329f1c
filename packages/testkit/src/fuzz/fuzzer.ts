import fc from 'fast-check';

/** A parser that meets bytes of strangers, and what must be true of whatever it makes of them. */
export interface Fuzzer {
  name: string;
  run: (options: FuzzOptions) => Promise<FuzzReport>;
}

export interface FuzzOptions {
  inputs: number;
  seed: number;
  /** The longest that one input may take, in ms; null where the machine's speed is not the subject. */
  slow_ms: number | null;
}

export interface FuzzReport {
  name: string;
  inputs: number;
  /** How many inputs the parser took, of those for which that means something. */
  taken: number;
  slowest_ms: number;
  /** The input that broke a rule, shrunk, and how to come to it again; null when there is none. */
  failure: { input: string; error: string; seed: number } | null;
}

/** Inputs of one call of fast-check, which remembers something of each. */
const PART = 5_000;

/**
 * @param check throws when a rule is broken; answers whether the parser took the input
 * @param kept inputs that once broke a rule, run before any other
 */
export function fuzzer<T>(
  name: string,
  input: fc.Arbitrary<T>,
  check: (input: T) => boolean | Promise<boolean>,
  kept: readonly T[] = [],
): Fuzzer {
  return { name, run: (options) => run(name, input, check, kept, options) };
}

async function run<T>(
  name: string,
  input: fc.Arbitrary<T>,
  check: (input: T) => boolean | Promise<boolean>,
  kept: readonly T[],
  { inputs, seed, slow_ms }: FuzzOptions,
): Promise<FuzzReport> {
  const report: FuzzReport = { name, inputs: 0, taken: 0, slowest_ms: 0, failure: null };
  const judge = async (value: T): Promise<void> => {
    const started = performance.now();
    const taken = await check(value);
    const ms = performance.now() - started;
    report.slowest_ms = Math.max(report.slowest_ms, ms);
    if (slow_ms !== null && ms > slow_ms) throw new Error(`took ${Math.round(ms)} ms`);
    report.inputs++;
    if (taken) report.taken++;
  };
  for (const value of kept) {
    try {
      await judge(value);
    } catch (error) {
      report.failure = { input: show(value), error: text(error), seed };
      return report;
    }
  }
  for (let from = 0; from < inputs; from += PART) {
    const part = (seed + from) | 0;
    const result = await fc.check(fc.asyncProperty(input, judge), {
      numRuns: Math.min(PART, inputs - from),
      seed: part,
      endOnFailure: false,
    });
    if (!result.failed) continue;
    const [value] = result.counterexample ?? [];
    report.failure = { input: show(value), error: text(result.errorInstance), seed: part };
    return report;
  }
  return report;
}

function show(value: unknown): string {
  const shown = JSON.stringify(value, (_key, part: unknown) =>
    part instanceof Uint8Array ? `base64 ${Buffer.from(part).toString('base64')}` : part,
  ) as string | undefined;
  return shown === undefined ? 'undefined' : shown.length > 4_000 ? `${shown.slice(0, 4_000)} ...` : shown;
}

function text(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message).split('\n').slice(0, 6).join('\n') : String(error);
}

/** @throws when a rule is broken */
export function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(`broken: ${rule}`);
}
