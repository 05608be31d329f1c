import { expect, test } from 'vitest';
import { play } from './cases/scenario.fixture.ts';

test('each job of a batch looks for itself who sends', async () => {
  const scene = await play({ meets: [] }, async (own) => {
    const { outbound } = own.stage.deployment;
    outbound.pause();
    for (const key of ['one', 'two', 'three']) await own.send(key);
    outbound.resume();
  });
  const reads = scene.stage.deployment.provider.log.map(({ read_at }) => read_at);
  expect(reads).not.toContain(null);
  expect(new Set(reads).size).toBe(3);
});
