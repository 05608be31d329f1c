import { expect, test } from 'vitest';
import { DAY, type Ended, MINUTE, play } from '../cases/scenario.fixture.ts';
import { turnClocks } from '../people.ts';
import { countersMatch } from './books.ts';
import { evidenceOf } from './evidence.fixture.ts';

function found(scene: Ended): string {
  return countersMatch(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

test.each([-DAY, -MINUTE, MINUTE, DAY])(
  'countersMatch finds a miscount though clocks were turned by %i ms',
  async (ms) => {
    const scene = await play({ meets: [], tenants: [{ mode: 'live', identities: 2, granted: 9 }] }, async (own) => {
      await own.send('before');
      own.stage.universe.turnClocks(ms);
      await own.send('after');
    });
    expect(found(scene)).toBe('');
    const { sql } = scene.stage.deployment.quota(scene.identity().tenant_id);
    sql.run("UPDATE counters SET value = value + 1 WHERE metric = 'sends'");
    expect(found(scene)).toContain('tenant counts');
    sql.run("UPDATE allowances SET used = used + 1 WHERE feature = 'sends'");
    expect(found(scene)).toContain('used says 3');
    scene.stage.deployment.directory.run("UPDATE usage_daily SET value = 0 WHERE metric = 'sends'");
    expect(found(scene)).toContain('usage of sends says');
  },
);

test('clocks that are turned by less than a year leave the counters to be held', () => {
  const draws = [0.1, 0.9, 0.5];
  const turned: number[] = [];
  const universe = { random: () => draws.shift() ?? 0, pick: () => DAY, turnClocks: (ms: number) => turned.push(ms) };
  const stage = { universe, since: 0 };
  turnClocks(stage as never);
  expect([turned, stage.since]).toEqual([[DAY], 0]);
});
