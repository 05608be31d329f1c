import { count } from '../mutants/words.ts';
import { type Breakages, breakageLines, foundBy, plain } from './breakages.ts';
import { CASE_IDS, GROUPS, INVARIANTS, OPEN, PARTLY_OPEN } from './cases.ts';
import { type Checker, LEVELS, type Shown } from './collect.ts';

export interface PageParts {
  shown: ReadonlyMap<string, readonly Shown[]>;
  checkers: readonly Checker[];
  /** Cases that a run of the simulator meets and counts by itself. */
  counted: ReadonlySet<string>;
  mutants: Breakages;
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
    `Of ${count(CASE_IDS.length, 'case')} ${CASE_IDS.length - open} are shown by tests and ${open} ${open === 1 ? 'is' : 'are'} open. How to run the proof stands in`,
    '[proof.md](proof.md), how the simulator works in [simulator.md](simulator.md). Under each case stand its tests, as their',
    'titles say what they assert; a test of a table is a line for each row, where its words stand in the source. A test that',
    'is skipped is not listed.',
    '',
    'Levels: **rules** are pure functions; **engine** is one engine over SQLite; **transport** is a transport against a',
    'server; **simulator** is all engines in a world of virtual time, where † marks what every long run also meets by chance',
    'and counts; **workerd** is the Worker in the runtime; **runtime** is the built Worker with state on disk; **kill** is the',
    'same under SIGKILL. A line of **kill** is no test of its own but what a kill run says that it has held to, with how often',
    'that came about; a run of ten rounds or more in which it never did fails. No case is shown by such a line alone.',
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
  lines.push(...breakageLines(parts.mutants), parts.beyond.trimEnd(), '');
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

function invariantLines({ checkers, shown, mutants }: PageParts): string[] {
  const lines = [
    '## Invariants',
    '',
    'Checked after every schedule of the simulator, with two exceptions. I8 needs a second run of the same schedule: it is',
    'checked when one is replayed (`--seed`, `--way`) and by its named tests, not in a run of many. And in a schedule whose',
    'clocks were turned, what reads the order of things from their times is not held: the checkers of webhooks, of',
    'suppressed recipients and of whose turn a thread is. The kill test holds I1, I2 and I5 against the log of the provider.',
    'A breakage is a change of the code that the checkers must find ([below](#breakages)).',
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
    const broken = foundBy(mutants).filter(({ invariants }) => invariants.includes(id)).length;
    lines.push(`| ${id} | ${what} | ${names.join(', ')} | ${tests} | ${broken} |`);
  }
  return [...lines, ''];
}
