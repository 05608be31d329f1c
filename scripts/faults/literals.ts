/** Reads literals out of TypeScript, as far as this house writes them: no more of the language than tests need. */

export interface Bracket {
  /** Where it closes. */
  end: number;
  /** What stands between its commas, without the comments before it. */
  parts: string[];
}

const BLANK = /^(?:\s|\/\/.*|\/\*[\s\S]*?\*\/)*/;

/** The bracket that opens at `at`. Knows strings, comments, and regular expressions behind a bracket or a comma. */
export function bracket(source: string, at: number): Bracket {
  const parts: string[] = [];
  let depth = 0;
  let from = at + 1;
  const part = (to: number): void => {
    const text = source.slice(from, to).replace(BLANK, '').trimEnd();
    if (text !== '') parts.push(text);
    from = to + 1;
  };
  for (let n = at; n < source.length; n++) {
    const char = source[n] ?? '';
    if (char === '/' && source[n + 1] === '/') n = endOfLine(source, n);
    else if (char === '/' && source[n + 1] === '*') n = source.indexOf('*/', n) + 1;
    else if (char === '/' && /[(,[:=]\s*$/.test(source.slice(Math.max(0, n - 20), n))) n = endOf(source, n, '/');
    else if (char === "'" || char === '"' || char === '`') n = endOf(source, n, char);
    else if (char === ',' && depth === 1) part(n);
    else if (char === '(' || char === '[' || char === '{') depth++;
    else if (char === ')' || char === ']' || char === '}') {
      if (--depth === 0) {
        part(n);
        return { end: n, parts };
      }
    }
  }
  return { end: source.length, parts };
}

function endOfLine(source: string, at: number): number {
  const end = source.indexOf('\n', at);
  return end === -1 ? source.length : end;
}

function endOf(source: string, at: number, quote: string): number {
  for (let n = at + 1; n < source.length; n++) {
    if (source[n] === '\\') n++;
    else if (source[n] === quote) return n;
  }
  return source.length;
}

const QUOTED = /^\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/;

/** The string that the text begins with, and what follows it. */
export function stringAt(text: string): { value: string; rest: string } | undefined {
  const quoted = QUOTED.exec(text);
  if (quoted === null) return undefined;
  return { value: (quoted[2] ?? '').replace(/\\(['"`\\])/g, '$1'), rest: text.slice(quoted[0].length) };
}

/** A string or a number as a title shows it; null for everything else, and for a template with something in it. */
function word(text: string): string | null {
  if (/^-?[\d_.]+$/.test(text)) return text.replaceAll('_', '');
  const string = stringAt(text);
  if (string === undefined || string.rest !== '' || /^`.*\$\{/s.test(text)) return null;
  return string.value;
}

export type Row = (string | null)[];

/**
 * The rows of the table that `each` is called with, its bracket opening at `at`: a list that stands there, or one that
 * the file gives a name. undefined when it is made in another way.
 */
export function rowsAt(source: string, at: number): Row[] | undefined {
  const [table = ''] = bracket(source, at).parts;
  let list = table.replace(/ as const$/, '');
  if (/^\w+$/.test(list)) {
    const named = new RegExp(`^(?:export )?const ${list}\\b(?:=>|[^=;])*=\\s*(?=\\[)`, 'm').exec(source);
    if (named === null) return undefined;
    const open = named.index + named[0].length;
    list = source.slice(open, bracket(source, open).end + 1);
  }
  if (!list.startsWith('[')) return undefined;
  const { end, parts } = bracket(list, 0);
  // Something is done with the list, or rows come from elsewhere: which there are, only a run can tell.
  if (end !== list.length - 1 || parts.some((part) => part.startsWith('...'))) return undefined;
  return parts.map((part) => {
    const row = part.replace(/ as const$/, '');
    if (!row.startsWith('[')) return [word(row)];
    return bracket(row, 0).parts.map(word);
  });
}

/** A title with the row's words in it, as a run shows it; what is no literal stays as it is written. */
export function filled(title: string, row: Row): string {
  let column = 0;
  return title.replace(/%[sdifj]/g, (place) => {
    const value = row[column++] ?? null;
    if (value === null) return place;
    return place === '%j' && !/^-?[\d.]+$/.test(value) ? JSON.stringify(value) : value;
  });
}
