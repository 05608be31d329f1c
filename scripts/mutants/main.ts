import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readOptions, whole } from '@pmail/testkit/options.ts';
import { byKills, byScenarios, bySchedules, type Found } from './find.ts';
import type { Patch } from './patch.ts';
import { type MutantResult, RESULTS, readPatches, readResults } from './results.ts';
import { Tree } from './tree.ts';

/**
 * `npm run mutants [-- --only PART] [--schedules N] [--rounds N] [--jobs N]`: makes each breakage of scripts/mutants/patches
 * in a copy of the tree and looks whether the simulator or the kill test finds it. What was found is written down for
 * docs/faults.md.
 */

const USAGE = `npm run mutants -- [--only PART] [--schedules N] [--rounds N] [--jobs N]
    makes each breakage whose name has PART in it (all), so many at once, and looks for it in N schedules (2000) or N
    rounds of the kill test (20)`;

const { only, schedules, rounds, jobs } = readOptions(USAGE, (args) => {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      schedules: { type: 'string', default: '2000' },
      rounds: { type: 'string', default: '20' },
      jobs: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const { only: part = '' } = values;
  if (!readPatches().some(({ name }) => name.includes(part)))
    throw new Error(`There is no breakage with '${part}' in its name`);
  return {
    only: part,
    schedules: whole('schedules', values.schedules, 1),
    rounds: whole('rounds', values.rounds, 1),
    jobs: whole('jobs', values.jobs, 1),
  };
});

const ROOT = join(import.meta.dirname, '../..');
/** Of this run alone, and gone after it. */
const COPIES = join(ROOT, '.state/mutants', String(process.pid));

async function find(patch: Patch, broken: string, sound: string): Promise<Found | null> {
  if (patch.level === 'scenario') return byScenarios(broken, patch.finds);
  if (patch.level === 'kill') return byKills(broken, patch.finds, rounds);
  return (await bySchedules(sound, broken, patch.finds, schedules)) ?? byScenarios(broken, patch.finds);
}

async function check(patch: Patch, tree: Tree, sound: string): Promise<MutantResult> {
  const started = performance.now();
  tree.apply(patch);
  try {
    const found = await find(patch, tree.root, sound);
    const nothing = { caught_by: null, invariants: [], where: '', after: '' };
    const seconds = Math.round((performance.now() - started) / 100) / 10;
    return { name: patch.name, title: patch.title, ...(found ?? nothing), seconds };
  } finally {
    tree.restore();
  }
}

async function main(): Promise<number> {
  const all = readPatches();
  const patches = all.filter(({ name }) => name.includes(only));
  // The kill test fills the machine; what is found in virtual time goes side by side.
  const quick = patches.filter(({ level }) => level !== 'kill');
  const slow = patches.filter(({ level }) => level === 'kill');
  const results: MutantResult[] = [];
  // The tree may be worked on meanwhile.
  const sound = new Tree(ROOT, join(COPIES, 'sound'));
  const work = async (queue: Patch[], tree: Tree): Promise<void> => {
    for (let patch = queue.shift(); patch !== undefined; patch = queue.shift()) {
      const result = await check(patch, tree, sound.root);
      results.push(result);
      keep(all, results, `up to ${schedules} schedules or ${rounds} rounds`);
      const how = result.caught_by === null ? 'NOT FOUND' : `${result.caught_by} ${result.invariants.join(' ')}`;
      console.log(`${result.name}: ${how}; ${result.where}; ${result.after}; ${result.seconds.toFixed(1)} s`);
    }
  };
  const trees = Array.from({ length: jobs }, (_, n) => new Tree(ROOT, join(COPIES, String(n))));
  await Promise.all(trees.map((tree) => work(quick, tree)));
  const [tree] = trees;
  if (tree !== undefined) await work(slow, tree);

  const missed = results.filter(({ caught_by }) => caught_by === null);
  console.log(`${results.length} breakages, ${results.length - missed.length} found`);
  rmSync(COPIES, { recursive: true, force: true });
  return missed.length === 0 ? 0 : 1;
}

/** Kept after each, so that a run that is cut off is not lost; those that were not looked at stay as they were. */
function keep(all: readonly Patch[], fresh: readonly MutantResult[], bounds: string): void {
  const before = readResults();
  const kept = new Map([...before.results, ...fresh].map((result) => [result.name, result]));
  const results = all.flatMap(({ name, title }) => {
    const result = kept.get(name);
    return result === undefined ? [] : [{ ...result, title }];
  });
  const ran = `${new Date().toISOString().slice(0, 10)}, ${bounds}`;
  writeFileSync(RESULTS, `${JSON.stringify({ ran, results }, null, 2)}\n`);
}

process.exitCode = await main();
