import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPatches, readResults, resultProblems } from '../mutants/results.ts';
import { CASE_IDS, OPEN } from './cases.ts';
import { checkers, collect, countedCases, ROOT } from './collect.ts';
import { page, problems } from './page.ts';

/**
 * `npm run generate` writes docs/faults.md; `--check` says whether it is what the tests say, whether a case has none, and
 * whether each breakage was found by the patch as it is.
 */

const PATH = join(ROOT, 'docs/faults.md');
const shown = collect();
const wrong = problems(shown, CASE_IDS, OPEN);
for (const problem of wrong) console.error(`docs/faults.md: ${problem}`);
const mutants = { patches: readPatches(), results: readResults() };
const unfound = resultProblems(mutants.patches, mutants.results);
for (const problem of unfound) console.error(`docs/faults.md: ${problem}`);
const text = page({
  shown,
  checkers: checkers(),
  counted: countedCases(),
  mutants,
  beyond: readFileSync(join(ROOT, 'scripts/faults/beyond.md'), 'utf8'),
});
if (process.argv.includes('--check')) {
  const stale = readFileSync(PATH, 'utf8') !== text;
  if (stale) console.error('docs/faults.md is not what the tests say; run: npm run generate');
  if (stale || wrong.length > 0 || unfound.length > 0) process.exitCode = 1;
} else {
  // A page can be made while breakages are still to be looked for: it says so itself.
  writeFileSync(PATH, text);
  if (wrong.length > 0) process.exitCode = 1;
}
