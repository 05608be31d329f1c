import type { Patch } from '../mutants/patch.ts';
import { type MutantResult, standing } from '../mutants/results.ts';
import { count } from '../mutants/words.ts';

/** The part of the page about deliberate breakages. */

export interface Breakages {
  patches: readonly Patch[];
  results: readonly MutantResult[];
}

interface Row {
  patch: Patch;
  result: MutantResult | undefined;
}

/** Results that still speak of the patch as it is; those without a date are shown as what they are. */
export function foundBy({ patches, results }: Breakages): MutantResult[] {
  return rowsOf({ patches, results }).flatMap(({ patch, result }) =>
    result !== undefined && result.caught_by !== null && standing(patch, result) !== 'patch changed' ? [result] : [],
  );
}

function rowsOf({ patches, results }: Breakages): Row[] {
  return patches.map((patch) => ({ patch, result: results.find(({ name }) => name === patch.name) }));
}

export function breakageLines(parts: Breakages): string[] {
  return [
    '## Breakages',
    '',
    'Each line is a deliberate breakage of the send path, kept as a patch in `scripts/mutants/patches/`, and what found it.',
    '`npm run mutants` applies each to a copy of the tree and looks for it where its patch says: in **schedules** of the',
    'simulator (small ones and, one in four, random ones), and where none of them finds it in the fixed **scenarios** of the',
    'simulator; in scenarios alone; or in the **kill test**. Only what the patch names may be found broken. A schedule that',
    'finds it is played again without the breakage, a scenario is run alone with and without it, and both count only when',
    'they are clean there. What the kill test finds is not played again: no two runs are killed at the same moment. That the',
    'code without the breakage passes that test is shown by the kill runs of every change, which have to be clean.',
    '',
    ...levelLines(parts),
    '',
    '| Breakage | Looked for, at most | Found by | What did not hold | Seed, way or test | After | Seconds | Day |',
    '|---|---|---|---|---|---|---|---|',
    ...rowsOf(parts).map(line),
    '',
  ];
}

/** Which level found how many, and which of them went through a level unfound. */
function levelLines(parts: Breakages): string[] {
  const found = rowsOf(parts).filter(({ result }) => result !== undefined && foundBy(parts).includes(result));
  const at = (how: (row: Row) => boolean): Row[] => found.filter(how);
  const scenario = at(({ result }) => result?.caught_by === 'scenario');
  const fixed = scenario.filter(({ patch }) => patch.level === 'scenario');
  const second = scenario.filter(({ patch }) => patch.level === 'simulator');
  const schedules = at(({ result }) => result?.caught_by?.endsWith('schedule') === true);
  const kills = at(({ result }) => result?.caught_by === 'kill test');
  const lines = [
    `Of ${count(parts.patches.length, 'breakage')} ${found.length} are found: ${schedules.length} by schedules, ` +
      `${fixed.length} by the scenarios in which alone they are looked for, ${second.length} by scenarios after no schedule ` +
      `had found them, ${kills.length} by the kill test.`,
  ];
  const undated = found.filter(({ patch, result }) => standing(patch, result) === 'no date').length;
  if (undated > 0) {
    lines.push(
      '',
      `**${count(undated, 'result')} without a day** may be of older code or patches, until all are looked for again.`,
    );
  }
  if (second.length > 0) {
    lines.push(
      '',
      'Schedules alone did **not** find these; without its fixed scenarios the simulator would miss them:',
      '',
    );
    lines.push(...second.map(({ patch }) => `- ${patch.title}`));
  }
  return lines;
}

const LOOKED_FOR: Readonly<Record<Patch['level'], string>> = {
  simulator: 'schedules, then scenarios',
  scenario: 'scenarios',
  kill: 'kill test',
};

function line({ patch, result }: Row): string {
  const how = standing(patch, result);
  const shown = how === 'found' || how === 'no date' ? result : undefined;
  const cells = [
    patch.title,
    result?.bounds || LOOKED_FOR[patch.level],
    shown?.caught_by ??
      `**${how === 'patch changed' ? 'patch changed since' : how === 'no result' ? how : 'not found'}**`,
    shown?.invariants.join(', ') ?? '',
    shown === undefined ? '' : plain(shown.where),
    afterOf(patch, shown),
    result === undefined ? '' : result.seconds.toFixed(1),
    result === undefined ? '' : (result.ran ?? '**none**'),
  ];
  return `| ${cells.join(' | ')} |`;
}

function afterOf({ level }: Patch, shown: MutantResult | undefined): string {
  if (shown === undefined) return '';
  return level === 'simulator' && shown.caught_by === 'scenario' ? `no schedule found it; ${shown.after}` : shown.after;
}

/** Titles are text, not Markdown. */
export function plain(title: string): string {
  return title.replace(/[*_<>[\]|`]/g, '\\$&');
}
