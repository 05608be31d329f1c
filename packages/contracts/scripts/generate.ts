/**
 * Writes what is generated from the route table and the error catalogue:
 *
 *   node packages/contracts/scripts/generate.ts           write the files
 *   node packages/contracts/scripts/generate.ts --check   write nothing; exit 1 when one of them is stale
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { generatedFiles } from './files.ts';

const ROOT = join(import.meta.dirname, '../../..');

function current(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The first line that differs, as a hint at what changed. */
function firstDifference(before: string, after: string): string {
  const old = before.split('\n');
  const line = after.split('\n').findIndex((text, index) => text !== old[index]);
  const at = line === -1 ? old.length - 1 : line;
  const cut = (text: string | undefined): string => (text === undefined ? '(end of file)' : text.slice(0, 160));
  return `  line ${at + 1}\n  - ${cut(old[at])}\n  + ${cut(after.split('\n')[at])}`;
}

const check = process.argv.includes('--check');
const stale = generatedFiles()
  .map(({ path, text }) => ({ path: join(ROOT, path), text }))
  .filter(({ path, text }) => current(path) !== text);

for (const { path, text } of stale) {
  if (check) {
    console.error(`${relative(ROOT, path)} is stale\n${firstDifference(current(path), text)}`);
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    console.log(`wrote ${relative(ROOT, path)}`);
  }
}
if (check && stale.length > 0) {
  console.error('Run: node packages/contracts/scripts/generate.ts');
  process.exitCode = 1;
}
