import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Patch, parsePatch } from './patch.ts';

/** What found a breakage, in the last run. */
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
}

export interface Results {
  /** The day and the bounds of the run. */
  ran: string;
  results: MutantResult[];
}

const FOLDER = import.meta.dirname;
export const RESULTS = join(FOLDER, 'results.generated.json');

export function readResults(): Results {
  return existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as Results) : { ran: 'never', results: [] };
}

export function readPatches(): Patch[] {
  const folder = join(FOLDER, 'patches');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.patch'))
    .sort()
    .map((file) => parsePatch(file.replace('.patch', ''), readFileSync(join(folder, file), 'utf8')));
}
