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

/** Every case that a test names, by its own title or by that of a describe around it, and where. */
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
    for (const { path } of titlesIn(readFileSync(join(ROOT, file), 'utf8'))) {
      const title = path.join(' › ');
      for (const id of new Set(path.flatMap(casesIn))) add(id, { level, file, title });
    }
  }
  for (const { cases, title } of KILL_CHECKS) {
    for (const id of cases) add(id, { level: 'kill', file: 'scripts/kill/checks.ts', title });
  }
  return shown;
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
