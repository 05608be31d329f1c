import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { MARKS } from '@pmail/engine/marks.ts';
import { CASE_IDS } from './case-list.ts';
import { wayOf } from './exhaustive.ts';
import { randomSchedule } from './random.ts';
import { type Report, runSchedule, type Schedule } from './schedule.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { caseText, Tally } from './tally.ts';
import type { Share, Told } from './worker.ts';

/**
 * `npm run sim -- --schedules N [--seed S] [--no-exhaustive]`: small schedules in every way, then N random ones from seed
 * S on, on all cores. `--seed S` without a count, and `--way NAME`, replay that one schedule and print its history.
 */

interface Options {
  schedules: number;
  seed: number | null;
  exhaustive: boolean;
  /** The one schedule to replay. */
  replay: Schedule | null;
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
  const replay = replayed(args, schedules === null ? seed : null);
  return { schedules: schedules ?? 2_000, seed, exhaustive: !args.includes('--no-exhaustive'), replay };
}

function replayed(args: string[], seed: number | null): Schedule | null {
  const index = args.indexOf('--way');
  if (index < 0) return seed === null ? null : randomSchedule(seed);
  const schedule = wayOf(args[index + 1] ?? '');
  if (schedule === undefined) throw new Error('--way needs the name of a way, as a failed run prints it');
  return schedule;
}

function show({ violations, history }: Report, title: string): void {
  console.log(`\nFAILED ${title}`);
  for (const { invariant, text } of violations) console.log(`  ${invariant}: ${text}`);
  console.log(history.map((line) => `  ${line}`).join('\n'));
}

const FAILURES_SHOWN_MAX = 3;

async function replay(schedule: Schedule): Promise<number> {
  installSyncCrypto();
  const report = await runSchedule(schedule);
  const again = await runSchedule(schedule);
  const same = report.history.join('\n') === again.history.join('\n');
  if (report.violations.length > 0) show(report, 'replay');
  else console.log(report.history.join('\n'));
  console.log(`\ncases met: ${[...report.cases].map(([id, n]) => `${id} ${n}`).join(', ')}`);
  console.log(`replayed twice: ${same ? 'the same history' : 'I8: DIFFERENT HISTORIES'}`);
  const clean = same && report.violations.length === 0;
  console.log(clean ? 'clean' : 'NOT CLEAN');
  return clean ? 0 : 1;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.replay !== null) return replay(options.replay);
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
      show(report, title);
      console.log(`  replay: npm run sim -- ${kind === 'random' ? `--seed ${seed}` : `--way '${title}'`}`);
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
    `\nsmall schedules in ${tally.singles} ways, ${options.schedules} random schedules, ${tally.steps} steps, ${seconds} s`,
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
