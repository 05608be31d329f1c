import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { applyChange, parsePatch } from './patch.ts';
import { readPatches } from './results.ts';

const ROOT = join(import.meta.dirname, '../..');
const TEXT =
  'title: what is broken\nfinds: I1 I2\nlevel: kill\n@@ a/b.ts\none(\n  two,\n);\n@@ with\nthree();\n@@ end\n';

describe('a patch', () => {
  it('replaces code, however its lines are broken', () => {
    const { title, level, changes } = parsePatch('x', TEXT);
    expect([title, level, changes.length]).toEqual(['what is broken', 'kill', 1]);
    expect(changes.map((change) => applyChange('a;\n    one( two,\n );\nb;', change))).toEqual([
      'a;\n    three();\nb;',
    ]);
  });

  it('may take code away', () => {
    const { changes } = parsePatch('x', 'title: t\nfinds: I1\n@@ a.ts\nawait gone();\n@@ with\n@@ end\n');
    expect(changes.map((change) => applyChange('a; await gone(); b;', change))).toEqual(['a;  b;']);
  });

  it('does not apply where the code is gone, or stands twice', () => {
    const [change] = parsePatch('x', TEXT).changes;
    if (change === undefined) throw new Error('no change');
    expect(() => applyChange('one(2);', change)).toThrow('no such code any more');
    expect(() => applyChange('one( two, ); one( two, );', change)).toThrow('2 times');
  });

  it.each([
    '@@ a.ts\nx\n@@ with\ny\n@@ end',
    'title: t\nfinds: I1\n',
    'title: t\nfinds: I1\n@@ a.ts\nx\n@@ end',
    'title: t\n@@ a.ts\nx\n@@ with\n@@ end',
  ])('that is not whole is refused: %j', (text) => {
    expect(() => parsePatch('x', text)).toThrow();
  });
});

describe('the breakages', () => {
  const patches = readPatches();

  it('are many, and each has a title of its own', () => {
    expect(patches.length).toBeGreaterThanOrEqual(15);
    expect(new Set(patches.map(({ title }) => title)).size).toBe(patches.length);
  });

  it.each(patches.map((patch) => [patch.name, patch] as const))('%s applies to the code as it is', (_name, patch) => {
    const files = new Map<string, string>();
    for (const change of patch.changes) {
      const before = files.get(change.file) ?? readFileSync(join(ROOT, change.file), 'utf8');
      files.set(change.file, applyChange(before, change));
      expect(files.get(change.file)).not.toBe(before);
    }
  });
});
