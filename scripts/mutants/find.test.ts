import { describe, expect, it } from 'vitest';
import { byKills, type Kills } from './find.ts';
import { byScenarios, readReport, type Scenario, type Scenarios } from './scenarios.ts';

const LATE: Scenario = { file: 'a.test.ts', path: ['a claim', 'C6 that is late'], status: 'failed' };
const OTHER: Scenario = { file: 'a.test.ts', path: ['a claim', 'C1 is one'], status: 'failed' };

/** A tree whose scenarios end like this, all at once and each alone. */
function tree(all: Scenario[], alone: Record<string, string>): Scenarios {
  return async (one) => (one === undefined ? all : [{ ...one, status: alone[one.path.at(-1) ?? ''] ?? 'skipped' }]);
}

const says = (status: string) => ({ 'C6 that is late': status, 'C1 is one': status });

describe('a scenario that fails', () => {
  it('finds the breakage when it fails again alone, and passes without it', async () => {
    const found = await byScenarios(tree([], says('passed')), tree([OTHER, LATE], says('failed')), ['C6']);
    expect(found).toMatchObject({ caught_by: 'scenario', invariants: ['C6'], after: '2 scenarios' });
    expect(found?.where).toBe('a claim › C6 that is late');
  });

  it.each([
    ['fails without it too', tree([], says('failed')), tree([LATE], says('failed')), ['C6']],
    ['passes alone', tree([], says('passed')), tree([LATE], says('passed')), ['C6']],
    ['is of another case', tree([], says('passed')), tree([OTHER], says('failed')), ['C6']],
    ['only speaks of the id', tree([], says('passed')), tree([{ ...LATE, path: ['of C6 claims'] }], {}), ['C6']],
  ])('does not when it %s', async (_what, sound, broken, finds) => {
    expect(await byScenarios(sound, broken, finds)).toBeNull();
  });

  it('goes on to the next where the first fails without the breakage too', async () => {
    const sound = tree([], { 'C6 that is late': 'failed', 'C1 is one': 'passed' });
    expect(await byScenarios(sound, tree([LATE, OTHER], says('failed')), ['C6', 'C1'])).toMatchObject({
      invariants: ['C1'],
    });
  });

  it('is no verdict when it cannot be run alone, or when there is none', async () => {
    await expect(byScenarios(tree([], {}), tree([LATE], says('failed')), ['C6'])).rejects.toThrow('run alone');
    await expect(byScenarios(tree([], {}), tree([], {}), ['C6'])).rejects.toThrow('no scenarios');
  });
});

describe('a report of scenarios', () => {
  const file = (status: string, tests: string[], message = '') => ({
    name: '/tree/cases/a.test.ts',
    status,
    message,
    assertionResults: tests.map((test) => ({ ancestorTitles: ['a claim'], title: 'C1 is one', status: test })),
  });
  const read = (...testResults: object[]) => readReport(JSON.stringify({ testResults }), '/tree');

  it('has each with its file and its titles', () => {
    expect(read(file('failed', ['failed']))).toEqual([
      { file: 'cases/a.test.ts', path: ['a claim', 'C1 is one'], status: 'failed' },
    ]);
  });

  it('is none when a file did not come to its tests', () => {
    expect(() => read(file('passed', ['passed']), file('failed', [], 'no such module'))).toThrow(
      'the tree does not run, cases/a.test.ts: no such module',
    );
    expect(() => read(file('failed', ['skipped'], 'a hook failed'))).toThrow('the tree does not run');
  });
});

describe('the kill test', () => {
  const fault = (invariant: string) => [{ invariant, text: `${invariant} is broken` }];
  /** Rounds of each run, by the faults that they end with. */
  const plays = (...runs: string[][]): { play: Kills; asked: [number, number][] } => {
    const asked: [number, number][] = [];
    const play: Kills = async (seed, rounds) => {
      asked.push([seed, rounds]);
      const told = runs[asked.length - 1] ?? [];
      return {
        rounds: told.map((id, n) => ({ round: n + 1, faults: id === '' ? [] : fault(id) })),
        errors: 'out of memory',
      };
    };
    return { play, asked };
  };

  it('finds a breakage by a fault of its kind', async () => {
    const { play } = plays(['', 'I1']);
    expect(await byKills(play, ['I1'], 20)).toMatchObject({
      caught_by: 'kill test',
      invariants: ['I1'],
      where: 'seed 1: I1 is broken',
      after: '2 rounds',
    });
  });

  it('goes on from another seed after a round with faults of another kind, for as many rounds as are left', async () => {
    const { play, asked } = plays(['', 'I5'], ['I1']);
    expect(await byKills(play, ['I1'], 20)).toMatchObject({ where: 'seed 2: I1 is broken', after: '3 rounds' });
    expect(asked).toEqual([
      [1, 20],
      [2, 18],
    ]);
  });

  it('does not find it when no round has one', async () => {
    expect(await byKills(plays(['', '', '']).play, ['I1'], 3)).toBeNull();
    expect(await byKills(plays(['', '', 'I5']).play, ['I1'], 3)).toBeNull();
  });

  it('is no verdict when it broke itself', async () => {
    await expect(byKills(plays([]).play, ['I1'], 3)).rejects.toThrow('the kill test itself broke: out of memory');
    await expect(byKills(plays(['']).play, ['I1'], 3)).rejects.toThrow('broke');
  });
});
