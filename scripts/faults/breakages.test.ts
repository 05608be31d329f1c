import { describe, expect, it } from 'vitest';
import { type Patch, parsePatch } from '../mutants/patch.ts';
import type { MutantResult } from '../mutants/results.ts';
import { breakageLines, foundBy } from './breakages.ts';

const patch = (name: string, level: Patch['level'] = 'simulator') =>
  parsePatch(name, `title: ${name}\nfinds: I1\nlevel: ${level}\n@@ x.ts\na();\n@@ with\nb();\n@@ end\n`);

function result({ name, title, hash }: Patch, caught_by: MutantResult['caught_by'], ran = '2026-01-01'): MutantResult {
  return {
    name,
    title,
    caught_by,
    invariants: ['I1'],
    where: 'seed 1',
    after: '1 schedule',
    seconds: 2,
    ran,
    bounds: '2000 schedules, then scenarios',
    patch: hash,
  };
}

const rowOf = (lines: string[], title: string) => lines.find((line) => line.startsWith(`| ${title} |`));

describe('the table of breakages', () => {
  it('says of each on which day it was looked for, and how far', () => {
    const [a, b] = [patch('a'), patch('b')];
    const lines = breakageLines({
      patches: [a, b],
      results: [result(a, 'small schedule'), result(b, 'random schedule', '2026-02-02')],
    });
    expect(rowOf(lines, 'a')).toBe(
      '| a | 2000 schedules, then scenarios | small schedule | I1 | seed 1 | 1 schedule | 2.0 | 2026-01-01 |',
    );
    expect(rowOf(lines, 'b')).toContain('| 2026-02-02 |');
  });

  it('shows none as found whose patch has changed, and keeps none out', () => {
    const [changed, never, missed] = [patch('changed'), patch('never'), patch('missed')];
    const parts = {
      patches: [changed, never, missed],
      results: [{ ...result(changed, 'small schedule'), patch: 'another' }, result(missed, null)],
    };
    const lines = breakageLines(parts);
    expect(rowOf(lines, 'changed')).toContain('| **patch changed since** |  |  |');
    expect(rowOf(lines, 'never')).toContain('| **no result** |');
    expect(rowOf(lines, 'missed')).toContain('| **not found** |');
    expect(lines.join('\n')).toContain('Of 3 breakages 0 are found');
    expect(foundBy(parts)).toEqual([]);
  });

  it('says which went through all schedules unfound', () => {
    const [second, fixed] = [patch('second'), patch('fixed', 'scenario')];
    const lines = breakageLines({
      patches: [second, fixed],
      results: [result(second, 'scenario'), result(fixed, 'scenario')],
    });
    expect(rowOf(lines, 'second')).toContain('| no schedule found it; ');
    expect(lines).toContain('- second');
    expect(lines).not.toContain('- fixed');
    expect(lines.join('\n')).toContain('0 by schedules, 1 by the scenarios in which alone they are looked for, 1 by');
  });

  it('says of how many the day is not known', () => {
    const a = patch('a');
    const lines = breakageLines({ patches: [a], results: [{ ...result(a, 'scenario'), ran: null, patch: null }] });
    expect(rowOf(lines, 'a')).toContain('| **none** |');
    expect(lines.join('\n')).toContain('**1 result without a day**');
  });
});
