import { expect, test } from 'vitest';
import { chancesOf } from './faults.ts';
import { type Reduction, randomSchedule } from './random.ts';
import { report } from './report.fixture.ts';
import type { Report } from './schedule.ts';
import { describe as optionsOf, shrink } from './shrink.ts';

/** Smaller schedules that break the same rule. The runs are made up; what breaks is known. */

const SEED = 8;
const ON = chancesOf(randomSchedule(SEED).faults);
const GUILTY = ON[Math.floor(ON.length / 2)];

function broken(...rules: string[]): Report {
  return report({ seed: SEED, violations: rules.map((invariant) => ({ invariant, text: 'x' })) });
}

/** Two sends and one kind of fault break I1, with every second draw; without people it is something else that breaks. */
const run = ({ faults = new Set(ON), sends = 10, people = true, draw = 0 }: Reduction): Promise<Report> => {
  if (!people) return Promise.resolve(broken('I7'));
  const breaks =
    sends >= 2 && GUILTY !== undefined && faults.has(GUILTY) && (faults.size === ON.length || draw % 2 === 1);
  return Promise.resolve(breaks ? broken('I1') : broken());
};

test('a schedule that is clean cannot be made smaller', async () => {
  expect(
    await shrink(
      SEED,
      () => undefined,
      () => Promise.resolve(broken()),
    ),
  ).toBeUndefined();
});

test('what is left breaks the same rule with as little as can be', async () => {
  expect(ON.length).toBeGreaterThan(4);
  const told: string[] = [];
  const shrunk = await shrink(SEED, (line) => told.push(line), run);
  expect(shrunk?.reduction).toEqual({ faults: new Set([GUILTY]), sends: 2, draw: 1 });
  expect(shrunk?.report.violations).toMatchObject([{ invariant: 'I1' }]);
  expect(told.at(-1)).toContain(`--faults '${GUILTY}' --sends 2 --draw 1`);
});

test('a reduction is told as the options that replay it', () => {
  expect(optionsOf({})).toBe('everything');
  expect(optionsOf({ faults: new Set(['crash', 'evict']), sends: 2, people: false, draw: 3 })).toBe(
    "--faults 'crash,evict' --sends 2 --no-people --draw 3",
  );
});
