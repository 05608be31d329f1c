import { bracket, filled, rowsAt, stringAt } from './literals.ts';

/** Reads the titles of tests out of their sources, as far as this house writes them: formatted, one call per line. */

/** One test that runs, or one row of a table of tests. */
export interface Title {
  /** Titles of the describes around it, then its own. */
  path: string[];
}

const OPENING = /^( *)(describe|test|it)\b((?:\.\w+)*)/;

/** What does not run, runs only on some machines, or has to fail shows nothing. */
const NOT_RUN = /\.(?:skip|todo|runIf|fails)/;
const OPTION_NOT_RUN = /^,\s*\{[^{}]*\b(?:skip|todo|fails)\b/;

export function titlesIn(source: string): Title[] {
  const titles: Title[] = [];
  const open: { indent: number; title: string; runs: boolean }[] = [];
  let at = 0;
  for (const line of source.split('\n')) {
    const found = OPENING.exec(line);
    if (found !== null) {
      const [head, { length: indent } = '', kind, how = ''] = found;
      const call = callAt(source, at + head.length, how.endsWith('.each') || how.endsWith('.for'));
      if (call !== undefined) {
        while ((open.at(-1)?.indent ?? -1) >= indent) open.pop();
        const runs = !NOT_RUN.test(how) && !call.optionNotRun && (open.at(-1)?.runs ?? true);
        if (kind === 'describe') open.push({ indent, title: call.title, runs });
        else if (runs) {
          const around = open.map(({ title }) => title);
          for (const title of call.titles) titles.push({ path: [...around, title] });
        }
      }
    }
    at += line.length + 1;
  }
  return titles;
}

interface Call {
  title: string;
  /** The title of each row; the title itself where there is no table, or none that can be read. */
  titles: string[];
  optionNotRun: boolean;
}

/** The call that begins here, or the call of what it returns (`test.each(rows)('title')`). */
function callAt(source: string, start: number, each: boolean): Call | undefined {
  let at = skipTypes(source, start);
  if (source[at] !== '(') return undefined;
  const rows = each ? rowsAt(source, at) : undefined;
  if (each || stringIn(source, at) === undefined) {
    at = skipTypes(source, bracket(source, at).end + 1);
    if (source[at] !== '(') return undefined;
  }
  const string = stringIn(source, at);
  if (string === undefined) return undefined;
  const { value: title, rest } = string;
  // Rows that a title does not tell apart are one line.
  const titles = [...new Set(rows?.map((row) => filled(title, row)) ?? [title])];
  return { title, titles, optionNotRun: OPTION_NOT_RUN.test(rest) };
}

function stringIn(source: string, bracketAt: number): ReturnType<typeof stringAt> {
  return stringAt(source.slice(bracketAt + 1, bracketAt + 900));
}

function skipTypes(source: string, at: number): number {
  if (source[at] !== '<') return at;
  let depth = 0;
  for (let n = at; n < source.length; n++) {
    if (source[n] === '<') depth++;
    else if (source[n] === '>' && source[n - 1] !== '=' && --depth === 0) return n + 1;
  }
  return at;
}

const ID = '[SECTOVKPI]\\d{1,2}';
const IDS = `${ID}(?:(?:, | and | )${ID})*`;
const AT_START = new RegExp(`^(${IDS})(?=[ :])`);
const IN_BRACKETS = new RegExp(`\\((?:[^()]*; )?(${IDS})\\)`, 'g');

/** The cases that a title names: at its beginning, or alone in brackets. */
export function casesIn(title: string): string[] {
  const lists = [AT_START.exec(title)?.[1] ?? '', ...[...title.matchAll(IN_BRACKETS)].map((found) => found[1] ?? '')];
  return [...new Set(lists.flatMap((list) => list.match(new RegExp(ID, 'g')) ?? []))];
}
