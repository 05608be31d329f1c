import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Patch, parsePatch } from './patch.ts';
import { count } from './words.ts';

/** What became of a breakage when it was last looked for. */
export interface MutantResult {
  name: string;
  title: string;
  /** null when nothing did. */
  caught_by: 'random schedule' | 'small schedule' | 'scenario' | 'kill test' | null;
  /** Ids of what did not hold. */
  invariants: string[];
  /** The seed, the way, or the test. */
  where: string;
  /** How much had run by then: `12 schedules`, `3 rounds`. */
  after: string;
  seconds: number;
  /** The day; null for a result from before each had its own, which says nothing about the code of today. */
  ran: string | null;
  /** How far it was looked for. */
  bounds: string;
  /** Hash of the patch that was looked for. */
  patch: string | null;
}

const FOLDER = import.meta.dirname;
export const RESULTS = join(FOLDER, 'results.generated.json');

type Kept = Omit<MutantResult, 'ran' | 'bounds' | 'patch'> & Partial<MutantResult>;

export function readResults(): MutantResult[] {
  return existsSync(RESULTS) ? parseResults(readFileSync(RESULTS, 'utf8')) : [];
}

export function parseResults(text: string): MutantResult[] {
  const { results } = JSON.parse(text) as { results: Kept[] };
  return results.map((kept) => ({ ran: null, bounds: '', patch: null, ...kept }));
}

export function writeResults(results: readonly MutantResult[]): string {
  return `${JSON.stringify({ results }, null, 2)}\n`;
}

export function readPatches(): Patch[] {
  const folder = join(FOLDER, 'patches');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.patch'))
    .sort()
    .map((file) => parsePatch(file.replace('.patch', ''), readFileSync(join(folder, file), 'utf8')));
}

/**
 * The results after a part of the breakages was looked for: a fresh one takes the place of its own alone, one of a
 * breakage that could not be looked for is dropped, and so is one whose patch is gone.
 */
export function keepResults(
  patches: readonly Patch[],
  before: readonly MutantResult[],
  fresh: readonly MutantResult[],
  failed: ReadonlySet<string>,
): MutantResult[] {
  const kept = new Map([...before, ...fresh].map((result) => [result.name, result]));
  return patches.flatMap(({ name, title }) => {
    const result = kept.get(name);
    return result === undefined || failed.has(name) ? [] : [{ ...result, title }];
  });
}

/** What the last result of a breakage is worth today. */
export type Standing = 'found' | 'not found' | 'no result' | 'no date' | 'patch changed';

export function standing({ hash }: Patch, result: MutantResult | undefined): Standing {
  if (result === undefined) return 'no result';
  if (result.ran === null || result.patch === null) return 'no date';
  if (result.patch !== hash) return 'patch changed';
  return result.caught_by === null ? 'not found' : 'found';
}

/** Why the table of breakages does not show what it should, a line each; empty when every breakage is found. */
export function resultProblems(patches: readonly Patch[], results: readonly MutantResult[]): string[] {
  const found: string[] = [];
  let undated = 0;
  for (const patch of patches) {
    const { name } = patch;
    const again = `run: npm run mutants -- --only ${name}`;
    switch (
      standing(
        patch,
        results.find((result) => result.name === name),
      )
    ) {
      case 'found':
        break;
      case 'not found':
        found.push(`breakage ${name} was not found when it was last looked for; ${again}`);
        break;
      case 'no result':
        found.push(`breakage ${name} has no result; ${again}`);
        break;
      case 'patch changed':
        found.push(`the patch of breakage ${name} has changed since it was looked for; ${again}`);
        break;
      case 'no date':
        undated++;
    }
  }
  if (undated > 0) found.push(`${count(undated, 'result')} of breakages without a date; run: npm run mutants`);
  return found;
}
