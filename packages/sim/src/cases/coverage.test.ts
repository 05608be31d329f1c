import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CASE_IDS } from '../case-list.ts';

/** Each case of the design's list is a named test: its id stands in the test's name, somewhere in the house. */

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** How far the numbers of each kind go. */
const KINDS = { S: 15, E: 7, C: 9, T: 11, O: 5, V: 11, K: 4, P: 8, I: 9 };

const ALL = Object.entries(KINDS).flatMap(([kind, last]) => Array.from({ length: last }, (_, n) => `${kind}${n + 1}`));

/** Cases of parts that do not exist yet; each comes with its part. */
const LATER: Record<string, string> = {
  P2: 'an update of the deployed code',
};

function testFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    // The tests of how titles are read have titles that show nothing (`faults`).
    if (['node_modules', 'dist', '.state', '.wrangler', '.git', 'faults'].includes(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return testFiles(path);
    return entry.name.endsWith('.test.ts') ? [path] : [];
  });
}

/** Names of tests, and the first values of the rows from which a test takes its names. */
function namesIn(text: string): string[] {
  const names = [...text.matchAll(/\b(?:test|it|describe)(?:\.\w+\([^;]*?\))?\(\s*(['"`])(.*?)\1/gs)].map(
    (found) => found[2] ?? '',
  );
  const rows = [...text.matchAll(/\[\s*'([A-Z]\d+)',/g)].map((found) => found[1] ?? '');
  return [...names, ...rows];
}

const names = ['packages', 'apps', 'scripts'].flatMap((folder) =>
  testFiles(join(ROOT, folder)).flatMap((path) => namesIn(readFileSync(path, 'utf8'))),
);

/** Ids as the house writes them: at the beginning of a name, or alone in brackets. `are C0, DEL, C1` names no case. */
const ID = `(?:${ALL.join('|')})(?!\\d)`;
const IDS = `${ID}(?:(?:, | and | )${ID})*`;
const NAMES = new RegExp(`^${IDS}(?=[ :]|$)|\\((?:[^()]*; )?${IDS}\\)`, 'g');

function casesIn(name: string): string[] {
  return (name.match(NAMES) ?? []).flatMap((list) => list.match(new RegExp(`\\b${ID}`, 'g')) ?? []);
}

const covered = new Set(names.flatMap(casesIn));

describe('the list of cases', () => {
  test('is covered by named tests, as far as its parts exist', () => {
    expect(names.length).toBeGreaterThan(500);
    expect(ALL.filter((id) => !covered.has(id) && LATER[id] === undefined)).toEqual([]);
  });

  test('is read strictly out of names', () => {
    const named = (name: string) => casesIn(name).join(' ');
    expect(named('T10 the copy is missing')).toBe('T10');
    expect(named('P7 I1 makes no second email')).toBe('P7 I1');
    expect(named('comes again (V1, V2 and O5)')).toBe('V1 V2 O5');
    expect(['are C0, DEL, C1 and the line separators', 'S16 is none', '(C1 controls)'].map(named)).toEqual([
      '',
      '',
      '',
    ]);
  });

  test('says of no covered case that it comes later', () => {
    expect(Object.keys(LATER).filter((id) => covered.has(id))).toEqual([]);
  });

  test('has every case that a run of the simulator counts', () => {
    expect(CASE_IDS.map((id) => id.split(' ')[0] ?? '').filter((id) => !ALL.includes(id))).toEqual([]);
  });
});
