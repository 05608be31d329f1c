import { describe, expect, it } from 'vitest';
import { judgeMemory, lineThrough, OURS } from './judge.ts';
import type { Sample } from './memory.ts';

const MINUTES = 5;
const ACTIONS_A_MINUTE = 600;
/** What is worked on at the moment of a sample. */
const breath = (n: number): number => 3 * Math.abs(Math.sin(n * 2.3));

interface Course {
  held?: (actions: number) => number;
  other?: (actions: number) => number;
  resident?: (actions: number) => number;
}

function samples({ held = () => 16, other = () => 2, resident = () => 400 }: Course = {}, minutes = MINUTES): Sample[] {
  return Array.from({ length: minutes * 6 }, (_, n) => {
    const at = (n + 1) / 6;
    const actions = Math.round(at * ACTIONS_A_MINUTE);
    return {
      at,
      actions,
      resident: resident(actions) + 10 * breath(n * 3),
      held: new Map([
        [OURS, held(actions) + breath(n)],
        ['d1:db', other(actions)],
      ]),
    };
  });
}

const faults = (course?: Course, minutes = MINUTES): string[] => judgeMemory(samples(course, minutes), minutes).faults;
const kb = (n: number): number => n / 1_024;

it('the line through points is the one they lie on', () => {
  const line = lineThrough([1, 2, 3, 4].map((x) => ({ x, y: 10 + 3 * x })));
  expect(line.slope).toBeCloseTo(3);
  expect(line.growth).toBeCloseTo(9);
});

describe('what an isolate holds after a collection', () => {
  it('may breathe', () => {
    expect(faults()).toEqual([]);
  });

  it('may rise in the warm-up, and fall', () => {
    expect(faults({ held: (actions) => 16 + Math.min(actions / 100, 5) })).toEqual([]);
    expect(faults({ held: (actions) => 30 - kb(actions) })).toEqual([]);
  });

  it.each([2, 5, 50])('may not rise by %d KB an action', (leak) => {
    expect(faults({ held: (actions) => 16 + kb(leak * actions) })[0]).toMatch(
      /^what core:user:pylota-mail holds after a collection rises: \+/,
    );
  });

  it('may not rise by 5 KB an action in a run of half the length either', () => {
    expect(faults({ held: (actions) => 16 + kb(5 * actions) }, 2.5)).toHaveLength(1);
  });

  it('may not rise by 200 bytes an action in half an hour', () => {
    expect(faults({ held: (actions) => 16 + kb(0.2 * actions) }, 30)).toHaveLength(1);
  });

  it('is judged of the stand-ins too, which may have more waiting, also when ours shrinks', () => {
    expect(faults({ other: (actions) => 2 + kb(2 * actions) })).toEqual([]);
    expect(faults({ held: (actions) => 30 - kb(5 * actions), other: (actions) => 2 + kb(20 * actions) })[0]).toContain(
      'd1:db',
    );
  });
});

describe('an isolate that is missing in a sample', () => {
  const without = (isolate: string, course: Course, gone: (n: number) => boolean): string[] => {
    const some = samples(course).map((sample, n) => {
      const held = new Map(sample.held);
      if (gone(n)) held.delete(isolate);
      return { ...sample, held };
    });
    return judgeMemory(some, MINUTES).faults;
  };

  it('is a fault when it is ours, wherever the sample is', () => {
    for (const gap of [8, 15, 25]) {
      expect(without(OURS, {}, (n) => n === gap)).toEqual([`${OURS} is missing in 1 of 25 samples`]);
    }
  });

  it('hides no leak of a stand-in at the end, and invents none at the beginning', () => {
    const leak = { other: (actions: number): number => 2 + kb(20 * actions) };
    expect(without('d1:db', leak, (n) => n === 25)).toEqual([expect.stringContaining('d1:db')]);
    expect(without('d1:db', leak, (n) => n > 26)).toEqual([expect.stringContaining('d1:db')]);
    expect(without('d1:db', { other: () => 30 }, (n) => n === 8)).toEqual([]);
  });
});

describe('the resident memory of the whole process', () => {
  it('may rise as far as caches do', () => {
    expect(faults({ resident: (actions) => 300 + Math.min(actions / 20, 100) })).toEqual([]);
  });

  it('may not rise all the time', () => {
    expect(faults({ resident: (actions) => 300 + 0.1 * actions })).toEqual([
      expect.stringMatching(/^resident memory rises by \+2/),
    ]);
  });

  it('has an upper bound', () => {
    expect(faults({ resident: () => 1_200 })).toEqual([expect.stringMatching(/^resident memory reaches 1/)]);
  });
});

describe('a run that can tell nothing', () => {
  it('fails for want of samples', () => {
    expect(judgeMemory([], MINUTES).faults[0]).toContain('0 samples');
    expect(faults({}, 1)[0]).toContain('tell nothing about memory');
  });

  it('fails when our isolate was not among those that answered', () => {
    const strangers = samples().map((sample) => ({ ...sample, held: new Map([['d1:db', 2]]) }));
    expect(judgeMemory(strangers, MINUTES).faults).toEqual([`${OURS} is missing in 25 of 25 samples`]);
  });

  it('fails for want of actions', () => {
    const idle = samples().map((sample) => ({ ...sample, actions: Math.round(sample.at * 30) }));
    expect(judgeMemory(idle, MINUTES).faults[0]).toContain('too few to see a leak of 5 KB');
  });
});
