import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { MARKS } from '@pmail/engine/marks.ts';
import { CASE_IDS } from './case-list.ts';
import { randomSchedule } from './random.ts';
import { type Report, runSchedule } from './schedule.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { caseText, Tally } from './tally.ts';
import type { Share, Told } from './worker.ts';

/**
 * `npm run sim -- --schedules N [--seed S] [--no-exhaustive]`: one send in every way, then N random schedules from seed
 * S on, on all cores. `--seed S` without a count replays that one schedule and prints its history.
 */

interface Options {
  schedules: number;
  seed: number | null;
  exhaustive: boolean;
  replay: boolean;
}

function readOptions(args: string[]): Options {
  const value = (name: string): number | null => {
    const index = args.indexOf(name);
    if (index < 0) return null;
    const number = Number(args[index + 1]);
    if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${name} needs a whole number`);
    return number;
  };
  const seed = value('--seed');
  const schedules = value('--schedules');
  const replay = seed !== null && schedules === null;
  return { schedules: schedules ?? 2_000, seed, exhaustive: !args.includes('--no-exhaustive') && !replay, replay };
}

function show({ violations, history }: Report, title: string): void {
  console.log(`\nFAILED ${title}`);
  for (const { invariant, text } of violations) console.log(`  ${invariant}: ${text}`);
  console.log(history.map((line) => `  ${line}`).join('\n'));
}

const FAILURES_SHOWN_MAX = 3;

async function replay(seed: number): Promise<number> {
  installSyncCrypto();
  const report = await runSchedule(randomSchedule(seed));
  const again = await runSchedule(randomSchedule(seed));
  const same = report.history.join('\n') === again.history.join('\n');
  if (report.violations.length > 0) show(report, `seed ${seed}`);
  else console.log(report.history.join('\n'));
  console.log(`\nreplayed twice: ${same ? 'the same history' : 'I8: DIFFERENT HISTORIES'}`);
  const clean = same && report.violations.length === 0;
  console.log(clean ? 'clean' : 'NOT CLEAN');
  return clean ? 0 : 1;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.replay) return replay(options.seed ?? 1);
  const started = performance.now();
  const tally = new Tally();
  const parts = Math.max(1, availableParallelism());
  const workers = Array.from({ length: parts }, (_, part) => {
    const workerData: Share = {
      part,
      parts,
      exhaustive: options.exhaustive,
      first: options.seed ?? 1,
      count: options.schedules,
    };
    return new Worker(new URL('./worker.ts', import.meta.url), { workerData });
  });
  const broken = await Promise.all(workers.map((worker) => follow(worker, tally)));
  return verdict(options, tally, started, broken.includes(true));
}

/** Hears out one thread; true when the thread itself broke. */
function follow(worker: Worker, tally: Tally): Promise<boolean> {
  return new Promise((resolve) => {
    worker.on('message', ({ kind, title, seed, report }: Told) => {
      tally.add(kind, report);
      if (report.violations.length === 0) return;
      // A broken rule fails everywhere; a few histories say as much as thousands.
      if (tally.failed > FAILURES_SHOWN_MAX) {
        worker.terminate().catch(() => undefined);
        return;
      }
      show(report, kind === 'one send' ? `one send: ${title}` : title);
      if (kind === 'random') console.log(`  replay: npm run sim -- --seed ${seed}`);
    });
    worker.on('error', (error) => {
      console.error(error);
      resolve(true);
    });
    worker.on('exit', () => resolve(false));
  });
}

function verdict(options: Options, tally: Tally, started: number, broken: boolean): number {
  // What ended early cannot have met everything.
  const whole = tally.failed <= FAILURES_SHOWN_MAX;
  const marks = whole ? tally.missedMarks() : [];
  const cases = whole ? tally.missedCases() : [];
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `\none send in ${tally.singles} ways, ${options.schedules} random schedules, ${tally.steps} steps, ${seconds} s`,
  );
  console.log(
    `marks reached: ${tally.marks.size} of ${MARKS.length}; pairs of faults seen together: ${tally.pairs.size}`,
  );
  console.log(`cases met: ${tally.cases.size} of ${CASE_IDS.length}\n${tally.casesMet()}`);
  for (const mark of marks) console.log(`  NEVER REACHED: ${mark}`);
  for (const id of cases) console.log(`  NEVER MET: ${caseText(id)}`);
  const clean = tally.failed === 0 && marks.length === 0 && cases.length === 0 && !broken;
  console.log(
    clean
      ? 'clean'
      : `NOT CLEAN: ${tally.failed} failed, ${marks.length} marks never reached, ${cases.length} cases never met`,
  );
  return clean ? 0 : 1;
}

process.exitCode = await main();
