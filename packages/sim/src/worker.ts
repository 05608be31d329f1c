import { parentPort, workerData } from 'node:worker_threads';
import { exhaustiveCases } from './exhaustive.ts';
import { randomSchedule } from './random.ts';
import { type Report, runSchedule } from './schedule.ts';
import { installSyncCrypto } from './sync-crypto.ts';

/** One of the threads of a run: takes its share of the cases, tells of each. */

export interface Share {
  part: number;
  parts: number;
  exhaustive: boolean;
  first: number;
  count: number;
}

export interface Told {
  kind: 'one send' | 'random';
  title: string;
  seed: number;
  report: Report;
}

async function run({ part, parts, exhaustive, first, count }: Share): Promise<void> {
  installSyncCrypto();
  if (exhaustive) {
    for await (const { name, report } of exhaustiveCases(part, parts)) tell('one send', name, 1, report);
  }
  for (let seed = first + part; seed < first + count; seed += parts) {
    tell('random', `seed ${seed}`, seed, await runSchedule(randomSchedule(seed)));
  }
}

function tell(kind: Told['kind'], title: string, seed: number, report: Report): void {
  // A clean history is long and of no interest.
  const history = report.violations.length > 0 ? report.history : [];
  parentPort?.postMessage({ kind, title, seed, report: { ...report, history } } satisfies Told);
}

await run(workerData as Share);
