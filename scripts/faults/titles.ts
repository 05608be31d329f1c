/** Reads the titles of tests out of their sources, as far as this house writes them: formatted, one call per line. */

export interface Title {
  /** Titles of the describes around it, then its own. */
  path: string[];
  /** False for a describe. */
  test: boolean;
  /** How many tests stand in a describe; 1 for a test. */
  count: number;
}

const OPENING = /^( *)(describe|test|it)\b(\.\w+)?/;
const QUOTED = /^\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/;

export function titlesIn(source: string): Title[] {
  const titles: Title[] = [];
  const open: { indent: number; title: string; entry: Title }[] = [];
  let at = 0;
  for (const line of source.split('\n')) {
    const found = OPENING.exec(line);
    if (found !== null) {
      const indent = found[1]?.length ?? 0;
      const title = titleAt(source, at + found[0].length);
      if (title !== undefined) {
        while ((open.at(-1)?.indent ?? -1) >= indent) open.pop();
        const test = found[2] !== 'describe';
        const entry = { path: [...open.map((outer) => outer.title), title], test, count: test ? 1 : 0 };
        if (test) for (const outer of open) outer.entry.count++;
        else open.push({ indent, title, entry });
        titles.push(entry);
      }
    }
    at += line.length + 1;
  }
  return titles;
}

/** The first string of the call that begins here, or of the call of what it returns (`test.each(rows)('title')`). */
function titleAt(source: string, start: number): string | undefined {
  let at = start;
  for (let call = 0; call < 2; call++) {
    at = skipTypes(source, at);
    if (source[at] !== '(') return undefined;
    const quoted = QUOTED.exec(source.slice(at + 1, at + 600));
    if (quoted !== null) return (quoted[2] ?? '').replace(/\\(['"`\\])/g, '$1');
    at = closing(source, at) + 1;
  }
  return undefined;
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

/** Where the bracket that opens at `at` closes. Knows strings, comments, and regular expressions behind a bracket. */
function closing(source: string, at: number): number {
  let depth = 0;
  for (let n = at; n < source.length; n++) {
    const char = source[n] ?? '';
    if (char === '/' && source[n + 1] === '/') n = source.indexOf('\n', n);
    else if (char === '/' && source[n + 1] === '*') n = source.indexOf('*/', n) + 1;
    else if (char === '/' && /[(,[:=]\s*$/.test(source.slice(Math.max(0, n - 20), n))) n = endOf(source, n, '/');
    else if (char === "'" || char === '"' || char === '`') n = endOf(source, n, char);
    else if (char === '(' || char === '[' || char === '{') depth++;
    else if (char === ')' || char === ']' || char === '}') {
      if (--depth === 0) return n;
    }
  }
  return source.length;
}

function endOf(source: string, at: number, quote: string): number {
  for (let n = at + 1; n < source.length; n++) {
    if (source[n] === '\\') n++;
    else if (source[n] === quote) return n;
  }
  return source.length;
}

const ID = '[SECTOVKPI]\\d{1,2}';
const IDS = `${ID}(?:(?:, | and )${ID})*`;
const AT_START = new RegExp(`^(${IDS})(?=[ :])`);
const IN_BRACKETS = new RegExp(`\\((?:[^()]*; )?(${IDS})\\)`, 'g');

/** The cases that a title names: at its beginning, or alone in brackets. */
export function casesIn(title: string): string[] {
  const lists = [AT_START.exec(title)?.[1] ?? '', ...[...title.matchAll(IN_BRACKETS)].map((found) => found[1] ?? '')];
  return [...new Set(lists.flatMap((list) => list.match(new RegExp(ID, 'g')) ?? []))];
}
