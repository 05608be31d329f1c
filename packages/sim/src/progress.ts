import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Saved } from './tally.ts';

/** Where a long run stands, so that it can be stopped and gone on with. It is good for the code that wrote it alone. */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What a schedule's history depends on. */
const PARTS = ['core', 'engine', 'mime', 'transports', 'testkit', 'sim'].map((name) => join('packages', name, 'src'));

export interface Progress {
  /** The first seed that was not run. */
  next: number;
  seconds: number;
  tally: Saved;
}

/** A file for a run, by its first seed, whether small schedules are in it, and the code. */
export function progressFile(first: number, exhaustive: boolean): string {
  return join(ROOT, '.state', 'sim', `${codeHash()}-${first}${exhaustive ? '' : '-random'}.json`);
}

export function readProgress(file: string): Progress | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Progress;
  } catch {
    return undefined;
  }
}

/** A process that is killed while it writes leaves the state of before. */
export function writeProgress(file: string, progress: Progress): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, JSON.stringify(progress));
  renameSync(`${file}.new`, file);
}

export function forgetProgress(file: string): void {
  rmSync(file, { force: true });
}

function codeHash(): string {
  const hash = createHash('sha256');
  for (const part of ['migrations', ...PARTS]) {
    const names = readdirSync(join(ROOT, part), { recursive: true, encoding: 'utf8' }).sort();
    for (const name of names.filter((one) => /(?<!\.test)\.(ts|sql)$/.test(one))) {
      hash.update(name).update(readFileSync(join(ROOT, part, name)));
    }
  }
  return hash.digest('hex').slice(0, 12);
}
