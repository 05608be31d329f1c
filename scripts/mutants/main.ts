import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readOptions, whole } from '@pmail/testkit/options.ts';
import { isStopped, stopAll } from './children.ts';
import { byKills, bySchedules, type Found, killsIn } from './find.ts';
import type { Patch } from './patch.ts';
import { keepResults, type MutantResult, RESULTS, readPatches, readResults, writeResults } from './results.ts';
import { byScenarios, scenariosIn } from './scenarios.ts';
import { Tree } from './tree.ts';
import { count } from './words.ts';

/**
 * `npm run mutants [-- --only PART] [--schedules N] [--rounds N] [--jobs N]`: makes each breakage of scripts/mutants/patches
 * in a copy of the tree and looks whether the simulator or the kill test finds it. What was found is written down for
 * docs/faults.md, each with its own day and bounds.
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
  if (patch.level === 'kill') return byKills(killsIn(broken), patch.finds, rounds);
  if (patch.level === 'simulator') {
    const found = await bySchedules(sound, broken, patch.finds, schedules);
    if (found !== null) return found;
  }
  const out = join(broken, 'scenarios.json');
  return byScenarios(scenariosIn(sound, out), scenariosIn(broken, out), patch.finds);
}

function boundsOf({ level }: Patch): string {
  if (level === 'kill') return count(rounds, 'round');
  return level === 'scenario' ? 'scenarios' : `${count(schedules, 'schedule')}, then scenarios`;
}

async function check(patch: Patch, tree: Tree, sound: string): Promise<MutantResult> {
  const started = performance.now();
  tree.apply(patch);
  try {
    const found = await find(patch, tree.root, sound);
    const { name, title, hash } = patch;
    return {
      name,
      title,
      ...(found ?? { caught_by: null, invariants: [], where: '', after: '' }),
      seconds: Math.round((performance.now() - started) / 100) / 10,
      ran: new Date().toISOString().slice(0, 10),
      bounds: boundsOf(patch),
      patch: hash,
    };
  } finally {
    tree.restore();
  }
}

/** Looks for one breakage after the other; one that cannot be looked for does not keep the others from it. */
class Search {
  readonly #all = readPatches();
  readonly #fresh: MutantResult[] = [];
  readonly #failed = new Set<string>();

  patches(level: 'kill' | 'virtual'): Patch[] {
    return this.#all.filter((patch) => patch.name.includes(only) && (patch.level === 'kill') === (level === 'kill'));
  }

  async work(queue: Patch[], tree: Tree, sound: string): Promise<void> {
    for (let patch = queue.shift(); patch !== undefined && !isStopped(); patch = queue.shift()) {
      const { name } = patch;
      try {
        const result = await check(patch, tree, sound);
        this.#fresh.push(result);
        const how = result.caught_by === null ? 'NOT FOUND' : `${result.caught_by} ${result.invariants.join(' ')}`;
        console.log(`${name}: ${how}; ${result.where}; ${result.after}; ${result.seconds.toFixed(1)} s`);
      } catch (error) {
        // What was stopped has not failed: its last result stands.
        if (isStopped()) return;
        this.#failed.add(name);
        console.log(`${name}: COULD NOT BE LOOKED FOR: ${error instanceof Error ? error.message : String(error)}`);
      }
      this.#keep();
    }
  }

  /** After each, so that a run that is cut off is not lost. */
  #keep(): void {
    writeFileSync(RESULTS, writeResults(keepResults(this.#all, readResults(), this.#fresh, this.#failed)));
  }

  /** Says how it ended; true when every breakage was found. */
  end(): boolean {
    const found = this.#fresh.filter(({ caught_by }) => caught_by !== null).length;
    const failed = this.#failed.size === 0 ? '' : `, ${this.#failed.size} could not be looked for`;
    console.log(`${count(this.#fresh.length + this.#failed.size, 'breakage')}, ${found} found${failed}`);
    return this.#failed.size === 0 && found === this.#fresh.length;
  }
}

async function main(): Promise<number> {
  // The first stops what runs and clears up; whoever does not want to wait for that says it again.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stopAll());
  const search = new Search();
  try {
    // The tree may be worked on meanwhile.
    const { root: sound } = new Tree(ROOT, join(COPIES, 'sound'));
    const [first, ...others] = Array.from({ length: jobs }, (_, n) => new Tree(ROOT, join(COPIES, String(n))));
    if (first === undefined) throw new Error('no tree to break');
    const quick = search.patches('virtual');
    await Promise.all([first, ...others].map((tree) => search.work(quick, tree, sound)));
    // The kill test fills the machine; what is found in virtual time goes side by side.
    await search.work(search.patches('kill'), first, sound);
    return search.end() && !isStopped() ? 0 : 1;
  } finally {
    await stopAll();
    rmSync(COPIES, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

process.exitCode = await main();
