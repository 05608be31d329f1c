import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KILL_CHECKS } from '../kill/checks.ts';
import { casesIn, titlesIn } from './titles.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Where a case can be shown, from the purest to the most real. */
export const LEVELS = ['rules', 'engine', 'transport', 'simulator', 'workerd', 'runtime', 'kill'] as const;
export type Level = (typeof LEVELS)[number];

/** One place that shows a case. */
export interface Shown {
  level: Level;
  file: string;
  title: string;
}

const HOMES: readonly (readonly [string, Level])[] = [
  ['packages/sim/', 'simulator'],
  ['packages/engine/', 'engine'],
  ['packages/transports/', 'transport'],
  ['packages/testkit/', 'runtime'],
  ['apps/worker/test/', 'workerd'],
  ['packages/', 'rules'],
  ['scripts/', 'rules'],
];

/** A row from which the tests of the checkers take their names. */
const ROW = /^ {4}'([A-Z]\d+)',\n {4}'([^']+)',$/gm;

/** Every case that a test names, and where. A describe that names one stands for the tests in it. */
export function collect(): Map<string, Shown[]> {
  const shown = new Map<string, Shown[]>();
  const add = (id: string, place: Shown): void => {
    shown.set(id, [...(shown.get(id) ?? []), place]);
  };
  const files = globSync(['packages/*/src/**/*.test.ts', 'apps/*/{src,test}/**/*.test.ts', 'scripts/**/*.test.ts'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**', 'scripts/faults/**'],
  }).sort();
  for (const file of files) {
    const level = HOMES.find(([home]) => file.startsWith(home))?.[1] ?? 'rules';
    for (const { path, test, count } of titlesIn(readFileSync(join(ROOT, file), 'utf8'))) {
      const own = path.at(-1) ?? '';
      const title = test ? path.join(' › ') : `${path.join(' › ')} (${count === 1 ? 'one test' : `${count} tests`})`;
      if (!test && count === 0) continue;
      for (const id of casesIn(own)) {
        // What stands in every title below needs no line of its own.
        if (!test && inEvery(file, path, id)) continue;
        add(id, { level, file, title });
      }
    }
  }
  const rows = 'packages/sim/src/mutants.test.ts';
  for (const [, id = '', what] of readFileSync(join(ROOT, rows), 'utf8').matchAll(ROW)) {
    add(id, { level: 'simulator', file: rows, title: `the checkers find › ${id} broken by ${what}` });
  }
  for (const { cases, title } of KILL_CHECKS) {
    for (const id of cases) add(id, { level: 'kill', file: 'scripts/kill/checks.ts', title });
  }
  return shown;
}

function inEvery(file: string, path: string[], id: string): boolean {
  const below = titlesIn(readFileSync(join(ROOT, file), 'utf8')).filter(
    (title) => title.test && path.every((part, n) => title.path[n] === part),
  );
  return below.every(({ path: titles }) => casesIn(titles.at(-1) ?? '').includes(id));
}

export interface Checker {
  name: string;
  file: string;
  invariants: string[];
}

/** The checkers of the simulator, and what each of them reports as broken. */
export function checkers(): Checker[] {
  return globSync('packages/sim/src/checkers/*.ts', { cwd: ROOT })
    .sort()
    .flatMap((file) => {
      const parts = readFileSync(join(ROOT, file), 'utf8').split(/^export function /m);
      return parts.slice(1).flatMap((text) => {
        const invariants = [...new Set([...text.matchAll(/invariant: '([A-Z]\d+)'/g)].map(([, id = '']) => id))];
        return invariants.length === 0 ? [] : [{ name: /^\w+/.exec(text)?.[0] ?? '', file, invariants }];
      });
    });
}

/** What a run of the simulator counts, by the id of the case it belongs to. */
export function countedCases(): Set<string> {
  const text = readFileSync(join(ROOT, 'packages/sim/src/case-list.ts'), 'utf8');
  return new Set([...text.matchAll(/^ {2}'?([A-Z]\d+)\b[^:]*'?: /gm)].map(([, id = '']) => id));
}
