import { describe, expect, test } from 'vitest';
import { type Ended, play, type Scene, SECOND } from '../cases/scenario.fixture.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { threadsInTurn } from './turns.ts';

function found(scene: Ended): string {
  return threadsInTurn(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

/** A message and two answers to it, one after the other. */
async function run(): Promise<{ scene: Ended; sql: Scene['stage']['deployment']['directory'] }> {
  const scene = await play({ meets: [] }, async (own) => {
    const first = await own.send('first');
    await own.wait(20 * SECOND);
    for (const key of ['a', 'b']) {
      await own.pursue(own.answer(key, first));
      await own.wait(20 * SECOND);
    }
  });
  expect(found(scene)).toBe('');
  return { scene, sql: scene.stage.deployment.mailbox(scene.identity().identity_id).sql };
}

describe('threadsInTurn finds', () => {
  test('an answer that was committed while the one before it waited, though no lock was ever taken', async () => {
    const { scene, sql } = await run();
    sql.run('DELETE FROM sim_lock');
    sql.run("DELETE FROM sim_turn WHERE what = 'ended'");
    sql.run("DELETE FROM sim_turn WHERE what = 'claimed'");
    expect(found(scene)).toMatch(/thread 1 went on with msg_\w+ before msg_\w+ had its end/);
  });

  test('an answer that was committed while the one before it had its call', async () => {
    const { scene, sql } = await run();
    sql.run("DELETE FROM sim_turn WHERE what = 'ended'");
    expect(found(scene)).toContain('had its end');
    // A lease that is over keeps nobody out.
    sql.run("UPDATE sim_turn SET at = at + 60000 * n WHERE what <> 'claimed'");
    expect(found(scene)).toBe('');
  });
});
