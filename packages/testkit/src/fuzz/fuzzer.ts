import fc from 'fast-check';

/** A parser that meets bytes of strangers, and what must be true of whatever it makes of them. */
export interface Fuzzer {
  name: string;
  run: (options: FuzzOptions) => Promise<FuzzReport>;
}

export interface FuzzOptions {
  inputs: number;
  /** A whole number from 0 on. */
  seed: number;
  /** What one input may cost; null where the machine's speed is not the subject. */
  work: WorkLimit | null;
  /** Told before each input: the seed, and the input's number from 1 on, 0 for one that is kept. */
  before?: (seed: number, number: number) => void;
}

/** Time of the processor and not of the wall: on a busy machine the latter is that of all others too. */
export interface WorkLimit {
  /** What this thread has worked, in ms. */
  clock: () => number;
  most_ms: number;
}

/** Whether the parser took the input; a text says why it did not, where that tells how deep the input came. */
export type Verdict = boolean | string;

export interface FuzzReport {
  name: string;
  /** Without those that are kept. */
  inputs: number;
  taken: number;
  /** How many were refused, for each reason. */
  refused: Record<string, number>;
  /** Work of the input that took most, in ms; 0 where nobody looked. */
  slowest_ms: number;
  /** The input that broke a rule, shrunk, and how to come to it again; null when there is none. */
  failure: { input: string; error: string; seed: number } | null;
}

export interface FuzzExtras<T> {
  /** Inputs that once broke a rule, run before any other. */
  kept?: readonly T[];
  /** Its check reads an input many times over and looks at how the work grows; what that takes together says nothing. */
  judges_work?: boolean;
}

/** Inputs of one call of fast-check, which remembers something of each. */
const PART = 5_000;
/** Seeds of fast-check are of 32 bits; those above would be printed as negative ones. */
const SEEDS = 2 ** 31;
/** With fewer inputs it may be by chance that none is taken, or that all are. */
const TELLING = 1_000;

/** @param check throws when a rule is broken */
export function fuzzer<T>(
  name: string,
  input: fc.Arbitrary<T>,
  check: (input: T) => Verdict | Promise<Verdict>,
  extras: FuzzExtras<T> = {},
): Fuzzer {
  return { name, run: (options) => run(name, input, check, extras, options) };
}

export function emptyReport(name: string): FuzzReport {
  return { name, inputs: 0, taken: 0, refused: {}, slowest_ms: 0, failure: null };
}

/** @throws when the work is more than it may be */
export async function measured<T>(report: FuzzReport, work: WorkLimit | null, check: () => T): Promise<Awaited<T>> {
  if (work === null) return await check();
  const started = work.clock();
  const verdict = await check();
  const ms = work.clock() - started;
  report.slowest_ms = Math.max(report.slowest_ms, ms);
  if (ms > work.most_ms) throw new Error(`took ${Math.round(ms)} ms of the processor`);
  return verdict;
}

export function count(report: FuzzReport, verdict: Verdict): void {
  report.inputs++;
  if (verdict === true) {
    report.taken++;
    return;
  }
  const reason = verdict === false ? 'refused' : verdict;
  report.refused[reason] = (report.refused[reason] ?? 0) + 1;
}

/** What a run without a failure has shown too little of: a parser that takes all or nothing was not met. Or null. */
export function lopsided({ inputs, taken }: FuzzReport): string | null {
  if (inputs < TELLING) return null;
  if (taken === 0) return `none of ${inputs} inputs was taken`;
  return taken === inputs ? `none of ${inputs} inputs was refused` : null;
}

async function run<T>(
  name: string,
  input: fc.Arbitrary<T>,
  check: (input: T) => Verdict | Promise<Verdict>,
  { kept = [], judges_work = false }: FuzzExtras<T>,
  { inputs, seed, work, before = () => undefined }: FuzzOptions,
): Promise<FuzzReport> {
  const report = emptyReport(name);
  const limit = work !== null && judges_work ? { ...work, most_ms: Number.POSITIVE_INFINITY } : work;
  for (const value of kept) {
    before(seed, 0);
    try {
      await measured(report, limit, () => check(value));
    } catch (error) {
      report.failure = { input: show(value), error: text(error), seed };
      return report;
    }
  }
  for (let from = 0; from < inputs; from += PART) {
    // That of the first part is the one that was given, so a part runs again as the first of its own seed.
    const part = (seed + from) % SEEDS;
    let number = 0;
    const judge = async (value: T): Promise<void> => {
      before(part, ++number);
      count(report, await measured(report, limit, () => check(value)));
    };
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
