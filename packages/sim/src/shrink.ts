import { type ChanceOf, chancesOf } from './faults.ts';
import { type Reduction, randomSchedule } from './random.ts';
import { type Report, runSchedule } from './schedule.ts';

/**
 * Makes a failing random schedule smaller: fewer sends, nobody who interferes, fewer kinds of fault. Whatever is taken away
 * changes every draw after it, so each attempt is made with a few draws, and kept when one of them breaks the same rule.
 */

const DRAWS = 3;
const RUNS_MAX = 200;

export interface Shrunk {
  reduction: Reduction;
  report: Report;
  runs: number;
}

/** @returns undefined when the schedule does not fail */
export async function shrink(
  seed: number,
  told: (line: string) => void,
  run: (reduction: Reduction) => Promise<Report> = (reduction) => runSchedule(randomSchedule(seed, reduction)),
): Promise<Shrunk | undefined> {
  const whole = await run({});
  const rules = new Set(whole.violations.map(({ invariant }) => invariant));
  if (rules.size === 0) return undefined;
  let best: Shrunk = { reduction: {}, report: whole, runs: 1 };
  let runs = 1;

  /** The attempt with the first draw that fails alike, or undefined. */
  const attempt = async (reduction: Reduction): Promise<boolean> => {
    for (let draw = 0; draw < DRAWS && runs < RUNS_MAX; draw++) {
      runs++;
      const drawn = { ...reduction, draw };
      const report = await run(drawn);
      if (!report.violations.some(({ invariant }) => rules.has(invariant))) continue;
      best = { reduction: drawn, report, runs };
      told(`  fails still with ${describe(drawn)} (${report.history.length} lines)`);
      return true;
    }
    return false;
  };

  await attempt({ ...best.reduction, people: false });
  for (const sends of [1, 2, 3, 4, 6]) if (await attempt({ ...best.reduction, sends })) break;
  // Half of the faults at once, then a quarter, at last each alone.
  let on = best.reduction.faults === undefined ? chancesOf(randomSchedule(seed).faults) : [...best.reduction.faults];
  for (let size = Math.ceil(on.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < on.length; ) {
      const faults = new Set<ChanceOf>(on.filter((_fault, index) => index < at || index >= at + size));
      if (await attempt({ ...best.reduction, faults })) on = [...faults];
      else at += size;
    }
  }
  return { ...best, runs };
}

/** The options that replay it. */
export function describe({ faults, sends, people, draw }: Reduction): string {
  const parts = [
    faults === undefined ? '' : `--faults '${[...faults].join(',')}'`,
    sends === undefined ? '' : `--sends ${sends}`,
    people === false ? '--no-people' : '',
    draw === undefined || draw === 0 ? '' : `--draw ${draw}`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'everything' : parts.join(' ');
}
