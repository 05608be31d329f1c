import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Told } from './probe.ts';
import type { MutantResult } from './results.ts';

/** The ways to find a breakage in a tree; each gives null when it finds none that the sound tree does not have. */

export type Found = Pick<MutantResult, 'caught_by' | 'invariants' | 'where' | 'after'>;

const PROBE = 'scripts/mutants/probe.ts';

interface Output {
  code: number | null;
  errors: string;
}

/** Runs node in a tree; `onLine` may end it by answering true. */
function run(root: string, args: string[], onLine: (line: string) => Promise<boolean>): Promise<Output> {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString('utf8')).slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  const read = async (): Promise<void> => {
    for await (const line of createInterface({ input: child.stdout })) {
      if (await onLine(line)) {
        child.kill('SIGTERM');
        return;
      }
    }
  };
  return Promise.all([ended, read()]).then(([code]) => ({ code, errors }));
}

async function probeOne(root: string, told: Told): Promise<Told | null> {
  let answer: Told | null = null;
  await run(root, [PROBE, '--one', told.kind, told.where], async (line) => {
    answer = JSON.parse(line) as Told;
    return false;
  });
  return answer;
}

/** So many small and random schedules. */
export async function bySchedules(
  sound: string,
  broken: string,
  finds: readonly string[],
  schedules: number,
): Promise<Found | null> {
  let found: Found | null = null;
  let whole = false;
  const { errors } = await run(broken, [PROBE, '--schedules', String(schedules)], async (line) => {
    const told = JSON.parse(line) as Told;
    if (told.kind === 'end') whole = true;
    // A schedule that fails without the breakage says nothing about it, and neither does a failure of another kind.
    else if (
      told.invariants.some((id) => finds.includes(id)) &&
      (await probeOne(sound, told))?.invariants.length === 0
    ) {
      found = {
        caught_by: told.kind === 'random' ? 'random schedule' : 'small schedule',
        invariants: told.invariants,
        where: told.kind === 'random' ? `seed ${told.where}` : told.where,
        after: `${told.ran} schedules`,
      };
    }
    return found !== null;
  });
  if (found === null && !whole) throw new Error(`the simulator itself broke: ${errors}`);
  return found;
}

interface VitestReport {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[];
}

/** The fixed scenarios of the simulator. */
export async function byScenarios(broken: string, finds: readonly string[]): Promise<Found | null> {
  const out = join(broken, 'scenarios.json');
  rmSync(out, { force: true });
  const vitest = join(broken, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'sim', 'packages/sim/src/cases', '--reporter=json', `--outputFile=${out}`];
  const { errors } = await run(broken, args, async () => false);
  let report: VitestReport;
  try {
    report = JSON.parse(readFileSync(out, 'utf8')) as VitestReport;
  } catch {
    throw new Error(`the scenarios could not be run: ${errors}`);
  }
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.filter(
    ({ status, fullName }) => status === 'failed' && casesOf(fullName).some((id) => finds.includes(id)),
  );
  const [first] = failed;
  if (first === undefined) return null;
  const cases = [...new Set(failed.flatMap(({ fullName }) => casesOf(fullName)))];
  return { caught_by: 'scenario', invariants: cases, where: first.fullName, after: `${tests.length} scenarios` };
}

function casesOf(title: string): string[] {
  return title.match(/\b[SECTOVKP]\d{1,2}\b/g) ?? [];
}

/** The real runtime, killed, until a round is not clean. */
export async function byKills(broken: string, finds: readonly string[], rounds: number): Promise<Found | null> {
  let found: Found | null = null;
  let ended = false;
  const args = ['scripts/kill/main.ts', '--rounds', String(rounds), '--seed', '1', '--json', '--stop'];
  const { errors } = await run(broken, args, async (line) => {
    if (!line.startsWith('{')) return false;
    const { round, faults } = JSON.parse(line) as { round: number; faults: { invariant: string; text: string }[] };
    ended = round >= rounds;
    const [first] = faults.filter(({ invariant }) => finds.includes(invariant));
    if (first !== undefined) {
      const invariants = [...new Set(faults.map(({ invariant }) => invariant))].sort();
      found = { caught_by: 'kill test', invariants, where: `seed 1: ${first.text}`, after: `${round} rounds` };
    }
    // It ends by itself and takes its runtime along.
    return false;
  });
  if (found === null && !ended) throw new Error(`the kill test itself broke: ${errors}`);
  return found;
}
