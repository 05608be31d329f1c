import { readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { casesIn } from '../faults/titles.ts';
import { run } from './children.ts';
import type { Found } from './find.ts';
import { count } from './words.ts';

/** Looks for a breakage in the fixed scenarios of the simulator. */

export interface Scenario {
  /** Below the root of its tree. */
  file: string;
  /** Titles of the describes around it, then its own. */
  path: string[];
  status: string;
}

/** Runs the scenarios of a tree, or one of them alone. */
export type Scenarios = (one?: Scenario) => Promise<Scenario[]>;

interface Report {
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { ancestorTitles: string[]; title: string; status: string }[];
  }[];
}

const FOLDER = 'packages/sim/src/cases';

/** @param out where the report is written: a tree may serve several at once */
export function scenariosIn(root: string, out: string): Scenarios {
  return async (one) => {
    rmSync(out, { force: true });
    const which = one === undefined ? [FOLDER] : [one.file, '-t', namePattern(one.path)];
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const args = [vitest, 'run', '--project', 'sim', ...which, '--reporter=json', `--outputFile=${out}`];
    const { errors } = await run(root, args, async () => false);
    let text: string;
    try {
      text = readFileSync(out, 'utf8');
    } catch {
      throw new Error(`the scenarios could not be run: ${errors}`);
    }
    return readReport(text, root);
  };
}

/** The runner holds it against the titles joined like this. */
function namePattern(path: readonly string[]): string {
  return `^${path.join(' > ').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
}

/** @throws when a file of scenarios did not come to its tests: such a tree does not run, and nothing is shown by it */
export function readReport(text: string, root: string): Scenario[] {
  const { testResults } = JSON.parse(text) as Report;
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    if (status === 'failed' && !assertionResults.some((test) => test.status === 'failed')) {
      throw new Error(`the tree does not run, ${file}: ${message}`);
    }
    return assertionResults.map((test) => ({
      file,
      path: [...test.ancestorTitles, test.title],
      status: test.status,
    }));
  });
}

/**
 * The first scenario of a case that the breakage is to spoil which fails, fails again alone (beside others it may only
 * have been too slow), and passes alone in the sound tree.
 */
export async function byScenarios(
  sound: Scenarios,
  broken: Scenarios,
  finds: readonly string[],
): Promise<Found | null> {
  const all = await broken();
  if (all.length === 0) throw new Error('the tree has no scenarios');
  const casesOf = ({ path }: Scenario): string[] => [...new Set(path.flatMap(casesIn))];
  for (const one of all) {
    if (one.status !== 'failed' || !casesOf(one).some((id) => finds.includes(id))) continue;
    if ((await alone(broken, one)) !== 'failed' || (await alone(sound, one)) !== 'passed') continue;
    return {
      caught_by: 'scenario',
      invariants: casesOf(one),
      where: one.path.join(' › '),
      after: count(all.length, 'scenario'),
    };
  }
  return null;
}

async function alone(tree: Scenarios, one: Scenario): Promise<string> {
  const name = one.path.join(' › ');
  const found = (await tree(one)).find(({ path, file }) => file === one.file && path.join(' › ') === name);
  if (found === undefined || !['passed', 'failed'].includes(found.status)) {
    throw new Error(`the scenario could not be run alone: ${name}`);
  }
  return found.status;
}
