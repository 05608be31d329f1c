import { describe, expect, test } from 'vitest';
import { exhaustiveCases, wayOf } from './exhaustive.ts';
import { raceFamilies } from './races.ts';
import { randomSchedule } from './random.ts';
import { runSchedule, type Schedule } from './schedule.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { everyPlace, type Ran } from './variants.ts';

installSyncCrypto();

/** A seed whose schedule goes on after a month, one that lasts long enough for an hour's outage, and ordinary ones. */
const MONTHLY = seedWhere((schedule) => schedule.month_later !== undefined);
const LONG = seedWhere((schedule) => schedule.stormy_ms > 3_600_000);
const SEEDS = [1, 2, 3, 4, 5, 6, MONTHLY, LONG];

function seedWhere(fits: (schedule: Schedule) => boolean): number {
  for (let seed = 7; seed < 1_000; seed++) if (fits(randomSchedule(seed))) return seed;
  throw new Error('no such seed');
}

describe('a random schedule', () => {
  test.each(SEEDS)('of seed %i holds every invariant', async (seed) => {
    const { violations, history } = await runSchedule(randomSchedule(seed));
    expect(violations, history.join('\n')).toEqual([]);
  });

  test.each(SEEDS)('I8 of seed %i makes the same history each time, byte for byte', async (seed) => {
    const histories: string[] = [];
    for (let run = 0; run < 3; run++) histories.push((await runSchedule(randomSchedule(seed))).history.join('\n'));
    expect(histories[0]?.length).toBeGreaterThan(100);
    expect(histories[1]).toBe(histories[0]);
    expect(histories[2]).toBe(histories[0]);
  });

  test('I8 makes the same history whatever ran before it in the same process', async () => {
    const alone = await runSchedule(randomSchedule(3));
    for (const seed of [7, 8, 9]) await runSchedule(randomSchedule(seed));
    const after = await runSchedule(randomSchedule(3));
    expect(after.history).toEqual(alone.history);
    expect([...after.cases]).toEqual([...alone.cases]);
    expect(after.steps).toBe(alone.steps);
  });

  test('I8 makes another history for every other seed', async () => {
    const histories = new Set<string>();
    for (let seed = 1; seed <= 12; seed++) histories.add((await runSchedule(randomSchedule(seed))).history.join('\n'));
    expect(histories.size).toBe(12);
  });

  test('I8 shows a part that draws its own chance: two histories of one seed differ', async () => {
    let drawn = 0;
    const run = () =>
      runSchedule({
        ...randomSchedule(3),
        // As a part would that asks a source of chance of its own.
        wiring: { mailbox: (ports) => ({ ...ports, newId: (prefix, at) => ports.newId(prefix, at + (drawn++ % 97)) }) },
      });
    const [one, other] = [await run(), await run()];
    expect(other.history).not.toEqual(one.history);
  });
});

/** The names of all ways of a family, each of which has to hold. */
async function namesOf(ways: AsyncGenerator<Ran>): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, report } of ways) {
    names.push(name);
    expect(report.violations, `${name}\n${report.history.join('\n')}`).toEqual([]);
  }
  expect(new Set(names).size).toBe(names.length);
  return names;
}

describe('the exhaustive part', () => {
  test('crashes a send at every mark that it reaches, and each way holds every invariant', async () => {
    // So many parts that each is one family.
    expect(await namesOf(exhaustiveCases(0, 1_009))).toContain('accept [] x0, crash, at outcome.committed #1');
  });

  test('interferes at every mark that a send reaches, and each way holds every invariant', async () => {
    const family = raceFamilies().find(({ name }) => name === 'rate_limit, cancel');
    if (family === undefined) throw new Error('no such family');
    expect(await namesOf(everyPlace(family))).toContain('rate_limit, cancel, at consume.claimed #2');
  });

  test('is found again way by way, by the name under which a failed run prints it', async () => {
    const [plain, placed, none] = [
      wayOf('accept [delivered complained] x1, crash'),
      wayOf('rate_limit, cancel, at consume.claimed #2'),
      wayOf('rate_limit, cancel, at nowhere #2'),
    ];
    expect(plain?.faults).toMatchObject({ copies: 1, crash_at: null });
    expect(none).toBeUndefined();
    if (placed === undefined) throw new Error('not found');
    expect((await runSchedule(placed)).history.join('\n')).toContain('rate_limit');
  });
});
