import { describe, expect, it } from 'vitest';
import { CASE_IDS, OPEN } from './cases.ts';
import { checkers, collect, countedCases } from './collect.ts';
import { problems } from './page.ts';
import { casesIn, titlesIn } from './titles.ts';

const SOURCE = `
describe('a send', () => {
  test('leaves once (C1)', () => {});
  describe("that's late", () => {
    it.each([
      ['a)', /x\\)/], // ) in a comment
    ])('ends %s', () => {});
  });
  test.each<[string, () => void]>([['x', () => {}]])(
    'C2 again, %s',
    () => {},
  );
});
test.skip(\`alone\`, () => {});
`;

describe('titles of tests', () => {
  it('are read with those around them, whatever stands between', () => {
    expect(titlesIn(SOURCE).map(({ path, count }) => [path.join(' > '), count])).toEqual([
      ['a send', 3],
      ['a send > leaves once (C1)', 1],
      ["a send > that's late", 1],
      ["a send > that's late > ends %s", 1],
      ['a send > C2 again, %s', 1],
      ['alone', 1],
    ]);
  });

  it.each([
    ['S11 the answer is lost', ['S11']],
    ['S1, S2 and T3: it dies', ['S1', 'S2', 'T3']],
    ['what comes again (V1, V2, V5)', ['V1', 'V2', 'V5']],
    ['is late (K1) and early (K2)', ['K1', 'K2']],
    ['are C0, DEL, C1 and the line separators', []],
    ['of T4 recipients', []],
  ])('%s names its cases', (title, cases) => {
    expect(casesIn(title)).toEqual(cases);
  });
});

describe('the list of faults', () => {
  const shown = collect();

  it('has a test for every case that is not open', () => {
    expect(problems(shown, CASE_IDS, OPEN)).toEqual([]);
  });

  it('misses a case whose tests are gone, and one that is open no more', () => {
    const less = new Map([...shown].filter(([id]) => id !== 'C6'));
    expect(problems(less, CASE_IDS, OPEN)).toEqual(['no test names case C6, and it is not listed as open']);
    expect(problems(shown, CASE_IDS, { ...OPEN, C6: 'a lie' })).toEqual(['case C6 is listed as open and has a test']);
  });

  it('finds the checkers of the simulator, and what it counts', () => {
    expect(new Set(checkers().flatMap(({ invariants }) => invariants))).toContain('I9');
    expect(countedCases().size).toBeGreaterThan(50);
  });
});
