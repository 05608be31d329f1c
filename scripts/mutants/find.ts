import { run } from './children.ts';
import type { Told } from './probe.ts';
import type { MutantResult } from './results.ts';
import { count } from './words.ts';

/**
 * The ways to find a breakage in a tree by what chance brings about; each gives null when it does not. What schedules find
 * is held against the sound tree.
 */

export type Found = Pick<MutantResult, 'caught_by' | 'invariants' | 'where' | 'after'>;

const PROBE = 'scripts/mutants/probe.ts';

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
        after: count(told.ran, 'schedule'),
      };
    }
    return found !== null;
  });
  if (found === null && !whole) throw new Error(`the simulator itself broke: ${errors}`);
  return found;
}

interface Round {
  round: number;
  faults: { invariant: string; text: string }[];
}

/** Plays rounds of the kill test from a seed until one is not clean; gives those that ended. */
export type Kills = (seed: number, rounds: number) => Promise<{ rounds: Round[]; errors: string }>;

/** It ends by itself, and takes its runtime along. */
export function killsIn(root: string): Kills {
  return async (seed, rounds) => {
    const told: Round[] = [];
    const args = ['scripts/kill/main.ts', '--rounds', `${rounds}`, '--seed', `${seed}`, '--json', '--stop'];
    const { errors } = await run(root, args, async (line) => {
      if (line.startsWith('{')) told.push(JSON.parse(line) as Round);
      return false;
    });
    return { rounds: told, errors };
  };
}

/**
 * The real runtime, killed, until a round has a fault of the kind that the breakage is to make. A round with others alone
 * ends that run of the kill test, and the next goes on from another seed. Not held against the sound tree: no two runs are
 * killed at the same moment, so one that is clean there proves nothing about this one.
 */
export async function byKills(play: Kills, finds: readonly string[], rounds: number): Promise<Found | null> {
  let played = 0;
  for (let seed = 1; played < rounds; seed++) {
    const left = rounds - played;
    const { rounds: told, errors } = await play(seed, left);
    const last = told.at(-1);
    if (last === undefined || (last.faults.length === 0 && told.length < left)) {
      throw new Error(`the kill test itself broke: ${errors}`);
    }
    played += told.length;
    const first = last.faults.find(({ invariant }) => finds.includes(invariant));
    if (first === undefined) continue;
    const invariants = [...new Set(last.faults.map(({ invariant }) => invariant))].sort();
    return { caught_by: 'kill test', invariants, where: `seed ${seed}: ${first.text}`, after: count(played, 'round') };
  }
  return null;
}
