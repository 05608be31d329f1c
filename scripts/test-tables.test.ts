import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** The page that says which test shows what names only tests that there are. */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface Named {
  what: string;
  file: string;
  test: string;
}

/** Rows of a table of three columns whose second is a test file; an empty first cell repeats the one above. */
function namedTests(markdown: string): Named[] {
  const rows: Named[] = [];
  for (const [, cell = '', file = '', test = ''] of markdown.matchAll(/^\| (.*?) ?\| `([^`|]+)` \| (.+) \|$/gm)) {
    rows.push({ what: cell === '' ? (rows.at(-1)?.what ?? '') : cell, file, test });
  }
  return rows;
}

/** Whether a file has a test with exactly that title, as it stands in the source. */
function hasTest(source: string, title: string): boolean {
  const escaped = title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  // The title follows the opening bracket of the call, or that of the call which `each` returns.
  return new RegExp(`\\(\\s*(['"\`])${escaped}\\1`).test(source);
}

describe('docs/outbound-tests.md', () => {
  const markdown = readFileSync(join(ROOT, 'docs/outbound-tests.md'), 'utf8');
  const rows = namedTests(markdown);

  it('is read whole', () => {
    const tableRows = markdown.split('\n').filter((line) => line.startsWith('| ') && line.includes('.test.ts'));
    expect(rows).toHaveLength(tableRows.length);
    expect(new Set(rows.map(({ what }) => what)).size).toBeGreaterThan(40);
  });

  it('names only tests that there are', () => {
    const missing = rows.filter(({ file, test }) => {
      const path = join(ROOT, file);
      return !existsSync(path) || !hasTest(readFileSync(path, 'utf8'), test);
    });
    expect(missing).toEqual([]);
  });

  it('would miss a test that is renamed', () => {
    const source = "test('is there', () => {});\ntest.each([1])(\n  'is there for %s',\n  () => {},\n);";
    expect(hasTest(source, 'is there')).toBe(true);
    expect(hasTest(source, 'is there for %s')).toBe(true);
    expect(hasTest(source, 'is')).toBe(false);
    expect(hasTest(source, 'is gone')).toBe(false);
  });
});
