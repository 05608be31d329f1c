import { describe, expect, it } from 'vitest';
import { CASE_IDS, OPEN } from './cases.ts';
import { checkers, collect, countedCases } from './collect.ts';
import { filled, rowsAt } from './literals.ts';
import { problems } from './page.ts';
import { casesIn, titlesIn } from './titles.ts';

const SOURCE = `
const ROWS: readonly [string, () => void][] = [
  ['S1', () => {}],
  ['S5 again', () => {}],
];
describe('a send', () => {
  test('leaves once (C1)', () => {});
  describe("that's late", () => {
    it.each([
      ['a)', /x\\)/], // ) in a comment
      ['b', at(1)],
    ])('ends %s, %s', () => {});
  });
  test.each<[string, () => void]>(ROWS)(
    '%s: it dies',
    () => {},
  );
  test.each(many.map((one) => [one]))('C2 again, %s', () => {});
  it.each(['x', 'y'] as const)('is told', () => {});
});
test.skip(\`alone\`, () => {});
test('left out', { skip: true }, () => {});
it.skipIf(away)('only here', () => {});
it.todo('later');
it.fails('broken', () => {});
describe.skip('not now', () => {
  test('S2 neither', () => {});
});
test.concurrent('again', () => {});
`;

describe('titles of tests', () => {
  it('are read with those around them and with the words of their rows, and only of tests that run', () => {
    expect(titlesIn(SOURCE).map(({ path }) => path.join(' > '))).toEqual([
      'a send > leaves once (C1)',
      "a send > that's late > ends a), %s",
      "a send > that's late > ends b, %s",
      'a send > S1: it dies',
      'a send > S5 again: it dies',
      'a send > C2 again, %s',
      'a send > is told',
      'again',
    ]);
  });

  it.each([
    ['S11 the answer is lost', ['S11']],
    ['S1, S2 and T3: it dies', ['S1', 'S2', 'T3']],
    ['P7 I1 makes no second email', ['P7', 'I1']],
    ['what comes again (V1, V2, V5)', ['V1', 'V2', 'V5']],
    ['is late (K1) and early (K2)', ['K1', 'K2']],
    ['are C0, DEL, C1 and the line separators', []],
    ['of T4 recipients', []],
  ])('%s names its cases', (title, cases) => {
    expect(casesIn(title)).toEqual(cases);
  });
});

describe('rows of a table', () => {
  const rows = (table: string) => rowsAt(`(${table})('x')`, 0);

  it('are literals: strings, numbers, and nothing else', () => {
    expect(
      rows(`[['it\\'s', 1_000, x, \`a\${b}\`, \`c\`], 'alone', // no
      [-2, ['y'] as const]] as const`),
    ).toEqual([["it's", '1000', null, null, 'c'], ['alone'], ['-2', null]]);
  });

  it.each(['rows()', '[...OTHERS, 1]', '[1, 2].map(double)', 'UNKNOWN'])('are not made up for %s', (table) => {
    expect(rows(table)).toBeUndefined();
  });

  it('fill a title, and leave what is no literal', () => {
    expect(filled('%s of %j for %s, %s', ['S1', 'b', null])).toBe('S1 of "b" for %s, %s');
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

  it('knows the tests whose case stands in their row', () => {
    const titles = (id: string, file: string) =>
      shown.get(id)?.flatMap((place) => (place.file.endsWith(file) ? [place.title.split(' › ').at(-1)] : []));
    expect(titles('S5', 'sim/src/cases/submit.test.ts')).toEqual([
      'S5 at submit.in_transaction was never accepted: its repeat is, once, and what was left over goes',
    ]);
    expect(titles('T6', 'sim/src/cases/transport.test.ts')).toContain(
      'T6 server_error: uncertain, and never called again',
    );
    expect(titles('V10', 'sim/src/webhook-mutants.test.ts')?.length).toBeGreaterThan(10);
    expect(titles('I3', 'sim/src/mutants.test.ts')?.length).toBeGreaterThan(0);
  });

  it('takes what a run of the kill test prints for no test', () => {
    const places = shown.get('P8') ?? [];
    const printed = places.filter(({ level }) => level === 'kill');
    expect(printed).not.toEqual([]);
    expect(problems(new Map([...shown, ['P8', printed]]), CASE_IDS, OPEN)).toEqual([
      'no test names case P8, and it is not listed as open',
    ]);
  });

  it('finds the checkers of the simulator, and what it counts', () => {
    expect(new Set(checkers().flatMap(({ invariants }) => invariants))).toContain('I9');
    expect(countedCases().size).toBeGreaterThan(50);
  });
});
