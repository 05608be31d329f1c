import { addCounts, sayCounts } from '../load/answers.ts';
import { counted } from '../load/words.ts';
import { addUp, sayChecks } from './checks.ts';
import type { RoundResult } from './round.ts';

export type Round = Omit<RoundResult, 'history'>;

export function lineOf(result: Round): string {
  const { round, kills, ok, fail, answers_lost, not_sent, held, canceled, seconds } = result;
  const known = `${ok} ok, ${fail} refused, ${counted(answers_lost, 'answer')} lost, ${not_sent} not sent, ${held} held`;
  const after = `${result.settled_sent + result.settled_not_sent} uncertain, ${canceled} canceled`;
  const clean = result.broken ? 'BROKEN OFF' : result.faults.length === 0 ? 'clean' : 'NOT CLEAN';
  return `round ${round}: ${counted(kills, 'kill')}; ${known}; ${after}; ${seconds} s: ${clean}`;
}

/** A line of JSON of a round; maps become objects. */
export function jsonOf(result: Round): string {
  return JSON.stringify(result, (_key, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
}

/**
 * What a run has shown.
 *
 * @param failure what ended it outside of any round, or null
 */
export function verdict(
  results: readonly Round[],
  { taken, seed, failure }: { taken: number; seed: number; failure: string | null },
): { lines: string[]; clean: boolean } {
  const faults = results.reduce((sum, result) => sum + result.faults.length, failure === null ? 0 : 1);
  const total = addUp(results);
  const seconds = results.reduce((sum, round) => sum + round.seconds, 0);
  const lines = [
    `${counted(results.length, 'round')}, ${counted(total.kills, 'kill')}, ` +
      `${counted(total.answers_lost, 'answer')} lost at a kill, ${counted(taken, 'email')} taken by the provider, ` +
      `${total.settled_sent + total.settled_not_sent} settled by a person; ` +
      `${seconds.toFixed(0)} s, ${(seconds / Math.max(1, results.length)).toFixed(1)} s a round`,
    `  answers: ${sayCounts(addCounts(results.map(({ answers }) => answers.calm)))}`,
    `  around the kills: ${sayCounts(addCounts(results.map(({ answers }) => answers.around)))}`,
  ];
  const said = sayChecks(total, results.length, faults);
  for (const line of said.lines) lines.push(`  ${line}`);
  if (failure !== null) lines.push(`  it ended outside of its rounds: ${failure}`);
  if (faults > 0) lines.push(`NOT CLEAN: ${counted(faults, 'fault')}; seed ${seed}`);
  else if (said.missing.length > 0) lines.push(`NOT SHOWN: never once ${said.missing.join(', ')}; seed ${seed}`);
  else lines.push('clean');
  return { lines, clean: faults === 0 && said.missing.length === 0 };
}
