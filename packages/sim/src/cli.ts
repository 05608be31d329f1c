import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { readOptions } from '@pmail/testkit/options.ts';
import { findWay } from './exhaustive.ts';
import { readCommand, USAGE } from './options.ts';
import { forgetProgress, progressFile, readProgress, writeProgress } from './progress.ts';
import { randomSchedule } from './random.ts';
import { type Report, runSchedule } from './schedule.ts';
import { describe, shrink } from './shrink.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { Tally } from './tally.ts';
import { doneAlready, FAILURES_SHOWN_MAX, quoted, type Run, verdict } from './verdict.ts';
import type { Share, Told } from './worker.ts';

/** `npm run sim`: runs schedules on all cores, replays one, or makes a failing one smaller. */

/** Seeds after which the state of a run is written. */
const SLICE = 5_000;

function show({ violations, history }: Report, title: string): void {
  console.log(`\nFAILED ${title}`);
  for (const { invariant, text } of violations) console.log(`  ${invariant}: ${text}`);
  console.log(history.map((line) => `  ${line}`).join('\n'));
}

async function replay(run: () => Promise<Report>): Promise<number> {
  installSyncCrypto();
  const report = await run();
  const again = await run();
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
  const done = doneAlready(command, before);
  if (done !== undefined) {
    console.error(done);
    return 2;
  }
  const tally = before === undefined ? new Tally() : Tally.of(before.tally);
  const secondsBefore = before?.seconds ?? 0;
  const seconds = (): number => secondsBefore + (performance.now() - started) / 1_000;
  const end = command.first + command.schedules;
  let next = before?.next ?? command.first;
  if (before !== undefined) console.log(`goes on at seed ${next}`);
  let exhaustive = command.exhaustive && before === undefined;
  let broken = 0;
  while ((next < end || exhaustive) && broken === 0 && tally.failed <= FAILURES_SHOWN_MAX) {
    const count = Math.min(SLICE, end - next);
    broken = await slice(tally, exhaustive, next, count);
    exhaustive = false;
    next += count;
    if (command.schedules <= SLICE) continue;
    if (tally.failed === 0 && broken === 0) writeProgress(file, { next, seconds: seconds(), tally: tally.saved() });
    console.log(`  ${next - command.first} of ${command.schedules} schedules, ${seconds().toFixed(0)} s`);
  }
  console.log(
    `\nsmall schedules in ${tally.singles} ways, ${tally.randoms} random schedules, ${tally.steps} steps, ${seconds().toFixed(1)} s`,
  );
  const { lines, clean } = verdict(command, tally, broken);
  for (const line of lines) console.log(line);
  if (clean) forgetProgress(file);
  return clean ? 0 : 1;
}

/** Runs so many seeds on all cores; returns how many threads themselves broke. */
async function slice(tally: Tally, exhaustive: boolean, first: number, count: number): Promise<number> {
  const parts = Math.max(1, availableParallelism());
  const workers = Array.from({ length: parts }, (_, part) => {
    const workerData: Share = { part, parts, exhaustive, first, count };
    return new Worker(new URL('./worker.ts', import.meta.url), { workerData });
  });
  const broke = await Promise.all(workers.map((worker) => follow(worker, tally)));
  return broke.filter(Boolean).length;
}

/** Hears out one thread; true when the thread itself broke. */
function follow(worker: Worker, tally: Tally): Promise<boolean> {
  return new Promise((resolve) => {
    let stopped = false;
    worker.on('message', ({ kind, title, seed, report }: Told) => {
      tally.add(kind, report);
      if (report.violations.length === 0) return;
      if (tally.failed > FAILURES_SHOWN_MAX) {
        stopped = true;
        worker.terminate().catch(() => undefined);
        return;
      }
      show(report, title);
      console.log(`  replay: npm run sim -- ${kind === 'random' ? `--seed ${seed}` : `--way ${quoted(title)}`}`);
      if (kind === 'random') console.log(`  make it smaller: npm run sim -- --shrink ${seed}`);
    });
    worker.on('error', (error) => {
      console.error(error);
      resolve(true);
    });
    worker.on('exit', (code) => resolve(code !== 0 && !stopped));
  });
}

async function main(): Promise<number> {
  const command = readOptions(USAGE, readCommand);
  switch (command.do) {
    case 'run':
      return run(command);
    case 'replay':
      return replay(() => runSchedule(randomSchedule(command.seed, command.reduction)));
    case 'shrink':
      return reduce(command.seed);
    case 'way': {
      const way = findWay(command.name);
      if (way !== undefined) return replay(way.run);
      console.error(`no such way: ${command.name}; a failed run prints its name`);
      return 2;
    }
  }
}

process.exitCode = await main();
