import type { MutantResult } from '../mutants/results.ts';
import { CASE_IDS, GROUPS, INVARIANTS, OPEN, PARTLY_OPEN } from './cases.ts';
import { type Checker, LEVELS, type Shown } from './collect.ts';

export interface PageParts {
  shown: ReadonlyMap<string, readonly Shown[]>;
  checkers: readonly Checker[];
  /** Cases that a run of the simulator meets and counts by itself. */
  counted: ReadonlySet<string>;
  mutants: { ran: string; results: readonly MutantResult[] };
  /** The part that is written by hand: what the proof does not cover. */
  beyond: string;
}

/** What is wrong with the list itself: a case that nothing shows, one that is called open and is not, an unknown id. */
export function problems(
  shown: ReadonlyMap<string, readonly Shown[]>,
  ids: readonly string[],
  open: Readonly<Record<string, string>>,
): string[] {
  const found: string[] = [];
  for (const id of ids) {
    // What the kill test prints is a promise of its next run, and no test.
    const has = shown.get(id)?.some(({ level }) => level !== 'kill') === true;
    if (!has && open[id] === undefined) found.push(`no test names case ${id}, and it is not listed as open`);
    if (has && open[id] !== undefined) found.push(`case ${id} is listed as open and has a test`);
  }
  for (const [id, places] of shown) {
    if (!ids.includes(id) && INVARIANTS[id] === undefined) {
      found.push(`${places[0]?.file} names a case ${id}, which is not in the list`);
    }
  }
  for (const id of Object.keys(open)) if (!ids.includes(id)) found.push(`open case ${id} is not in the list`);
  return found;
}

export function page(parts: PageParts): string {
  const open = Object.keys(OPEN).length;
  const levels = (id: string): string[] =>
    LEVELS.filter(
      (level) =>
        parts.shown.get(id)?.some((place) => place.level === level) || (level === 'simulator' && parts.counted.has(id)),
    );
  const lines = [
    '# Faults: every case, and what shows that it is survived',
    '',
    '<!-- Made by `npm run generate` from the titles of the tests. Edit scripts/faults/ instead. -->',
    '',
    `Of ${CASE_IDS.length} cases ${CASE_IDS.length - open} are shown by tests and ${open} are open. How to run the proof stands in`,
    '[proof.md](proof.md), how the simulator works in [simulator.md](simulator.md).',
    '',
    'Levels: **rules** are pure functions; **engine** is one engine over SQLite; **transport** is a transport against a',
    'server; **simulator** is all engines in a world of virtual time, where † marks what every long run also meets by chance',
    'and counts; **workerd** is the Worker in the runtime; **runtime** is the built Worker with state on disk; **kill** is the',
    'same under SIGKILL.',
    '',
    ...invariantLines(parts),
  ];
  for (const { title, cases } of GROUPS) {
    lines.push(`## ${title}`, '');
    for (const [id, what] of Object.entries(cases)) {
      const at = levels(id).map((level) => (level === 'simulator' && parts.counted.has(id) ? 'simulator†' : level));
      lines.push(`**${id}** ${what}. ${OPEN[id] === undefined ? `*${at.join(', ')}*` : `**Open:** ${OPEN[id]}.`}`);
      if (PARTLY_OPEN[id] !== undefined) lines.push(`Partly open: ${PARTLY_OPEN[id]}.`);
      lines.push('', ...testLines(parts.shown.get(id) ?? []));
    }
  }
  lines.push(...mutantLines(parts.mutants), parts.beyond.trimEnd(), '');
  return lines.join('\n');
}

function testLines(places: readonly Shown[]): string[] {
  const lines: string[] = [];
  for (const level of LEVELS) {
    const files = new Map<string, string[]>();
    for (const { level: own, file, title } of places) {
      if (own === level) files.set(file, [...(files.get(file) ?? []), title]);
    }
    for (const [file, titles] of files) {
      lines.push(`- ${level}, \`${file}\``);
      for (const title of titles) lines.push(`  - ${plain(title)}`);
    }
  }
  return lines.length === 0 ? [] : [...lines, ''];
}

/** Titles are text, not Markdown. */
function plain(title: string): string {
  return title.replace(/[*_<>[\]|`]/g, '\\$&');
}

function invariantLines({ checkers, shown, mutants }: PageParts): string[] {
  const lines = [
    '## Invariants',
    '',
    'Checked after every schedule of the simulator; the kill test holds I1, I2 and I5 against the log of the provider. A',
    'breakage is a change of the code that the checkers must find ([below](#breakages)).',
    '',
    '| | What must hold | Checkers | Named tests | Breakages found by it |',
    '|---|---|---|---|---|',
  ];
  for (const [id, what] of Object.entries(INVARIANTS)) {
    const held = checkers.filter(({ invariants }) => invariants.includes(id));
    const names = held.map(({ name, file }) => `\`${name}\` (${file.split('/').at(-1)})`);
    if (id === 'I7') names.push('`drain` (schedule.ts)');
    if (id === 'I8') names.push('a replay is played twice and compared (cli.ts)');
    const tests = shown.get(id)?.length ?? 0;
    const broken = mutants.results.filter(({ invariants }) => invariants.includes(id)).length;
    lines.push(`| ${id} | ${what} | ${names.join(', ')} | ${tests} | ${broken} |`);
  }
  return [...lines, ''];
}

function mutantLines({ ran, results }: PageParts['mutants']): string[] {
  const lines = [
    '## Breakages',
    '',
    'Each line is a deliberate breakage of the send path, kept as a patch in `scripts/mutants/patches/`, and what found it:',
    '`npm run mutants` applies each to a copy of the tree, runs the simulator (small schedules and, one in four, random ones),',
    'then its fixed scenarios, or the kill test, and holds the failure against the same schedule without the breakage.',
    `Last run: ${ran}.`,
    '',
    '| Breakage | Found by | What did not hold | Seed or way | After | Seconds |',
    '|---|---|---|---|---|---|',
  ];
  for (const { title, caught_by, invariants, where, after, seconds } of results) {
    lines.push(
      `| ${title} | ${caught_by ?? '**not found**'} | ${invariants.join(', ')} | ${plain(where)} | ${after} | ${seconds.toFixed(1)} |`,
    );
  }
  return [...lines, ''];
}
