import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { MARKS } from '@pmail/engine/marks.ts';
import { readOptions } from '@pmail/testkit/options.ts';
import { CASE_IDS } from './case-list.ts';
import { wayOf } from './exhaustive.ts';
import { type Command, readCommand, USAGE } from './options.ts';
import { forgetProgress, progressFile, readProgress, writeProgress } from './progress.ts';
import { randomSchedule } from './random.ts';
import { type Report, runSchedule, type Schedule } from './schedule.ts';
import { describe, shrink } from './shrink.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { caseText, Tally } from './tally.ts';
import type { Share, Told } from './worker.ts';

/** `npm run sim`: runs schedules on all cores, replays one, or makes a failing one smaller. */

const FAILURES_SHOWN_MAX = 3;
/** Seeds after which the state of a run is written. */
const SLICE = 5_000;

type Run = Extract<Command, { do: 'run' }>;

function show({ violations, history }: Report, title: string): void {
  console.log(`\nFAILED ${title}`);
  for (const { invariant, text } of violations) console.log(`  ${invariant}: ${text}`);
  console.log(history.map((line) => `  ${line}`).join('\n'));
}

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

async function reduce(seed: number): Promise<number> {
  installSyncCrypto();
  const shrunk = await shrink(seed, (line) => console.log(line));
  if (shrunk === undefined) {
    console.log(`seed ${seed} is clean`);
    return 0;
  }
  const { reduction, report, runs } = shrunk;
  show(report, `seed ${seed}, reduced in ${runs} runs`);
  const options = describe(reduction);
  console.log(`  replay: npm run sim -- --seed ${seed}${options === 'everything' ? '' : ` ${options}`}`);
  return 1;
}

async function run(command: Run): Promise<number> {
  const started = performance.now();
  const file = progressFile(command.first, command.exhaustive);
  const before = command.resume ? readProgress(file) : undefined;
  const tally = before === undefined ? new Tally() : Tally.of(before.tally);
  const secondsBefore = before?.seconds ?? 0;
  const seconds = (): number => secondsBefore + (performance.now() - started) / 1_000;
  const end = command.first + command.schedules;
  let next = before?.next ?? command.first;
  if (before !== undefined) console.log(`goes on at seed ${next}`);
  let exhaustive = command.exhaustive && before === undefined;
  let broken = false;
  while ((next < end || exhaustive) && !broken && tally.failed <= FAILURES_SHOWN_MAX) {
    const count = Math.min(SLICE, end - next);
    broken = await slice(tally, exhaustive, next, count);
    exhaustive = false;
    next += count;
    if (command.schedules <= SLICE) continue;
    if (tally.failed === 0 && !broken) writeProgress(file, { next, seconds: seconds(), tally: tally.saved() });
    console.log(`  ${next - command.first} of ${command.schedules} schedules, ${seconds().toFixed(0)} s`);
  }
  const code = verdict(command, tally, seconds(), broken);
  if (code === 0) forgetProgress(file);
  return code;
}

/** Runs so many seeds on all cores; true when a thread itself broke. */
async function slice(tally: Tally, exhaustive: boolean, first: number, count: number): Promise<boolean> {
  const parts = Math.max(1, availableParallelism());
  const workers = Array.from({ length: parts }, (_, part) => {
    const workerData: Share = { part, parts, exhaustive, first, count };
    return new Worker(new URL('./worker.ts', import.meta.url), { workerData });
  });
  return (await Promise.all(workers.map((worker) => follow(worker, tally)))).includes(true);
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
      if (kind === 'random') console.log(`  make it smaller: npm run sim -- --shrink ${seed}`);
    });
    worker.on('error', (error) => {
      console.error(error);
      resolve(true);
    });
    worker.on('exit', (code) => resolve(code !== 0));
  });
}

function verdict(command: Run, tally: Tally, seconds: number, broken: boolean): number {
  // What ended early cannot have met everything.
  const whole = tally.failed <= FAILURES_SHOWN_MAX;
  const marks = whole ? tally.missedMarks() : [];
  const cases = whole ? tally.missedCases() : [];
  const crashes = whole ? tally.missedCrashes(command) : [];
  const missing = whole ? tally.missing(command) : [];
  console.log(
    `\nsmall schedules in ${tally.singles} ways, ${tally.randoms} random schedules, ${tally.steps} steps, ${seconds.toFixed(1)} s`,
  );
  console.log(`marks reached: ${tally.marks.size} of ${MARKS.length}`);
  console.log(`marks died at: ${tally.crashes.size} of ${MARKS.length}\n${tally.crashesSeen()}`);
  console.log(`transitions seen: ${tally.transitions.size}\n${tally.transitionsSeen()}`);
  console.log(`pairs of faults seen together: ${tally.pairs.size} of ${tally.pairsPossible()}`);
  for (const pair of tally.missedPairs()) console.log(`  not seen: ${pair}`);
  console.log(`cases met: ${tally.cases.size} of ${CASE_IDS.length}\n${tally.casesMet()}`);
  for (const mark of marks) console.log(`  NEVER REACHED: ${mark}`);
  for (const mark of crashes) console.log(`  NOBODY DIED AT: ${mark}`);
  for (const text of missing) console.log(`  MISSING: ${text}`);
  for (const id of cases) console.log(`  NEVER MET: ${caseText(id)}`);
  const gaps = [marks, cases, crashes, missing].some(({ length }) => length > 0);
  const clean = tally.failed === 0 && !gaps && !broken;
  console.log(
    clean
      ? 'clean'
      : `NOT CLEAN: ${tally.failed} failed, ${marks.length} marks never reached, ${cases.length} cases never met`,
  );
  return clean ? 0 : 1;
}

async function main(): Promise<number> {
  const command = readOptions(USAGE, readCommand);
  switch (command.do) {
    case 'run':
      return run(command);
    case 'replay':
      return replay(randomSchedule(command.seed, command.reduction));
    case 'shrink':
      return reduce(command.seed);
    case 'way': {
      const schedule = wayOf(command.name);
      if (schedule !== undefined) return replay(schedule);
      console.error(`no such way: ${command.name}; a failed run prints its name`);
      return 2;
    }
  }
}

process.exitCode = await main();
