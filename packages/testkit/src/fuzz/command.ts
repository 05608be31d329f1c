import { parseArgs } from 'node:util';
import { whole } from '../options.ts';
import { type Fuzzer, type FuzzReport, lopsided } from './fuzzer.ts';
import { watchForHangs } from './hang-watch.ts';
import { threadWorkMs } from './thread-work.ts';

/** What one input may work on any machine; the largest are some 100 KB. */
const WORK_MS = 3_000;
/** No input takes so long that comes to an end at all, however busy the machine is. */
const HANG_MS = 300_000;

export interface FuzzArgs {
  inputs: number;
  seed: number;
  only: string;
}

/** @throws with words for people */
export function readFuzzArgs(args: string[]): FuzzArgs {
  const { values } = parseArgs({
    args,
    options: {
      inputs: { type: 'string', default: '20000' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      only: { type: 'string', default: '' },
    },
  });
  return { inputs: whole('inputs', values.inputs, 1), seed: whole('seed', values.seed), only: values.only };
}

/** Statuses of a process that runs fuzzers. */
export const FUZZ_STATUS = { clean: 0, broken: 1, none: 3 } as const;

/** Runs those that are asked for, one after the other, and tells of each. */
export async function runFuzzers(
  fuzzers: readonly Fuzzer[],
  { inputs, seed, only }: FuzzArgs,
  hang_ms = HANG_MS,
): Promise<keyof typeof FUZZ_STATUS> {
  const asked = fuzzers.filter(({ name }) => name.includes(only));
  if (asked.length === 0) return 'none';
  const watch = watchForHangs(hang_ms);
  const work = { clock: threadWorkMs, most_ms: WORK_MS };
  let broken = 0;
  for (const fuzzer of asked) {
    watch.fuzzer(fuzzer.name);
    const started = performance.now();
    const report = await fuzzer.run({ inputs, seed, work, before: watch.input });
    console.log(told(report, (performance.now() - started) / 1_000));
    const again = (from: number) =>
      `  again: npm run fuzz -- --only '${report.name}' --inputs ${inputs} --seed ${from}`;
    const little = lopsided(report);
    if (report.failure !== null) {
      broken++;
      console.log(`  BROKEN by ${report.failure.input}\n  ${report.failure.error}\n${again(report.failure.seed)}`);
    } else if (little !== null) {
      broken++;
      console.log(`  SHOWS LITTLE: ${little}\n${again(seed)}`);
    }
  }
  await watch.stop();
  return broken === 0 ? 'clean' : 'broken';
}

function told({ name, inputs, taken, refused, slowest_ms }: FuzzReport, seconds: number): string {
  const reasons = Object.entries(refused).sort(([, a], [, b]) => b - a);
  const why = reasons.length < 2 ? '' : ` (${reasons.map(([reason, times]) => `${reason} ${times}`).join(', ')})`;
  const share = `${inputs} inputs, ${taken} taken, ${inputs - taken} refused${why}`;
  return `${name}: ${share}; most work ${slowest_ms.toFixed(0)} ms, ${seconds.toFixed(1)} s`;
}
