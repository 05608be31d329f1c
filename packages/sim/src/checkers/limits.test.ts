import { describe, expect, test } from 'vitest';
import { type Ended, play, type Scenario, SECOND } from '../cases/scenario.fixture.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { limitsKept } from './limits.ts';

function found(scene: Ended): string {
  return limitsKept(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

async function run(tenant: object, scenario: Partial<Scenario> = {}): Promise<Ended> {
  const scene = await play(
    { meets: [], tenants: [{ mode: 'live', identities: 2, ...tenant }], ...scenario },
    async (own) => {
      const intent = await own.send('key');
      await own.wait(60 * SECOND);
      if (scenario.provider !== undefined) await own.remote().resolve(own.row(intent).id, 'sent');
    },
  );
  expect(found(scene)).toBe('');
  return scene;
}

describe('limitsKept finds', () => {
  test.each([
    ['a tenant', 'sends', { tenant_daily_send_cap: 1 }],
    ['an identity', 'sends:', { identity_daily_send_cap: 1 }],
  ])('a counter of %s that was above its cap for a moment', async (_whose, metric, policy) => {
    const scene = await run({ policy });
    const { sql } = scene.stage.deployment.quota(scene.identity().tenant_id);
    for (const more of [1, -1])
      sql.run("UPDATE counters SET value = value + ? WHERE metric LIKE ? || '%'", more, metric);
    expect(found(scene)).toContain('was 2, the cap 1');
  });

  test('an allowance that was overdrawn, also beside somebody who was uncertain and never sent to', async () => {
    const scene = await run({ granted: 1 });
    const { sql } = scene.stage.deployment.quota(scene.identity().tenant_id);
    sql.run("UPDATE allowances SET used = 2 WHERE feature = 'sends'");
    expect(found(scene)).toContain('used 2 of 1, and 0 were uncertain');
  });

  test('nothing in a unit that is counted late, and one too many beside it', async () => {
    const scene = await run({ granted: 1 }, { provider: ['lose_before_accepting'], reports: [] });
    const { sql } = scene.stage.deployment.quota(scene.identity().tenant_id);
    sql.run("UPDATE allowances SET used = 2 WHERE feature = 'sends'");
    expect(found(scene)).toBe('');
    scene.stage.deployment.watcher.said.clear();
    expect(found(scene)).toContain('used 2 of 1, and 0 were uncertain');
  });
});
