import { expect, test } from 'vitest';
import { play } from '../cases/scenario.fixture.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { sendersMaySend } from './standing.ts';

test('sendersMaySend finds a message that left though nobody looked who sends', async () => {
  const scene = await play({ meets: [] }, async (own) => void (await own.send('key')));
  expect(sendersMaySend(evidenceOf(scene))).toEqual([]);
  for (const call of scene.stage.deployment.provider.log) call.read_at = null;
  expect(sendersMaySend(evidenceOf(scene)).map(({ text }) => text)).toEqual([
    expect.stringContaining('nobody looked who sends'),
  ]);
});
