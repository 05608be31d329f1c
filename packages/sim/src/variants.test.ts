import { describe, expect, test } from 'vitest';
import { findWay } from './exhaustive.ts';
import { report } from './report.fixture.ts';
import { runSchedule } from './schedule.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { diedThere } from './variants.ts';

installSyncCrypto();

const WAY = 'accept [delivered] x0, crash, at consume.claimed #1';

describe('a way that is to die at a place', () => {
  const way = findWay(WAY);
  if (way === undefined) throw new Error('no such way');
  const { schedule } = way;

  test('is broken when it did not, or somewhere else', () => {
    const texts = (crashes: [never, number][]): string[] =>
      diedThere(schedule, 'consume.claimed', report({ crashes: new Map(crashes) })).violations.map(({ text }) => text);
    expect(texts([])).toEqual(['was to die at consume.claimed once, and did 0 times']);
    expect(texts([['consume.start' as never, 1]])).toHaveLength(1);
    expect(texts([['consume.claimed' as never, 1]])).toEqual([]);
  });

  test('dies there, also where that is reached only when faults have stopped', async () => {
    const early = await runSchedule(schedule);
    expect(early.crashes).toEqual(new Map([['consume.claimed', 1]]));
    const late = await runSchedule({ ...schedule, stormy_ms: 1 });
    expect(late.crashes).toEqual(new Map([['consume.claimed', 1]]));
    expect([...early.violations, ...late.violations]).toEqual([]);
  });

  test('is broken in its replay too', async () => {
    const report = await findWay(WAY.replace('#1', '#9'))?.run();
    expect(report?.violations).toEqual([
      { invariant: 'way', text: 'was to die at consume.claimed once, and did 0 times' },
    ]);
    expect((await way.run()).violations).toEqual([]);
  });
});
