import { parseArgs } from 'node:util';
import type { Fuzzer } from './fuzzer.ts';

/** What one input may take on any machine; the largest are some 100 KB. */
const SLOW_MS = 3_000;

export interface FuzzArgs {
  inputs: number;
  seed: number;
  only: string;
}

export function readFuzzArgs(args: string[]): FuzzArgs {
  const { values } = parseArgs({
    args,
    options: {
      inputs: { type: 'string', default: '20000' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      only: { type: 'string', default: '' },
    },
  });
  const [inputs, seed] = [Number(values.inputs), Number(values.seed)];
  if (!Number.isSafeInteger(inputs) || inputs < 1 || !Number.isSafeInteger(seed)) {
    throw new Error('--inputs and --seed need whole numbers, and one input at least');
  }
  return { inputs, seed, only: values.only };
}

/** Statuses of a process that runs fuzzers. */
export const FUZZ_STATUS = { clean: 0, broken: 1, none: 3 } as const;

/** Runs those that are asked for, one after the other, and tells of each. */
export async function runFuzzers(
  fuzzers: readonly Fuzzer[],
  { inputs, seed, only }: FuzzArgs,
): Promise<keyof typeof FUZZ_STATUS> {
  const asked = fuzzers.filter(({ name }) => name.includes(only));
  let broken = 0;
  for (const fuzzer of asked) {
    const started = performance.now();
    const report = await fuzzer.run({ inputs, seed, slow_ms: SLOW_MS });
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const share = `${report.inputs} inputs, ${report.taken} taken`;
    console.log(`${report.name}: ${share}, slowest ${report.slowest_ms.toFixed(0)} ms, ${seconds} s`);
    if (report.failure === null) continue;
    broken++;
    console.log(`  BROKEN by ${report.failure.input}\n  ${report.failure.error}`);
    console.log(`  again: npm run fuzz -- --only '${report.name}' --inputs ${inputs} --seed ${report.failure.seed}`);
  }
  if (asked.length === 0) return 'none';
  return broken === 0 ? 'clean' : 'broken';
}
