import { describe, expect, test } from 'vitest';
import { type Ended, play, type Scenario } from '../cases/scenario.fixture.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { oneCall } from './sends.ts';

const TO = ['a@example.net', 'b@example.net', 'c@example.net'];

function found(scene: Ended): string {
  return oneCall(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

async function run(scenario: Partial<Scenario>, index = 0): Promise<{ scene: Ended; sql: (query: string) => void }> {
  const scene = await play({ meets: [], ...scenario }, async (own) => void (await own.send('key', { to: TO }, index)));
  expect(found(scene)).toBe('');
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  return { scene, sql: (query) => scene.sql(intent).run(query) };
}

describe('oneCall finds', () => {
  test('a call that begins while another is under way, or after one that nobody lived to end', async () => {
    const { scene } = await run({ provider: ['rate_limit', 'accept'] });
    const [first, second] = scene.stage.deployment.provider.exchanges;
    if (first === undefined || second === undefined) throw new Error('one call only');
    first.ended_at = second.begun_at + 1;
    expect(found(scene)).toContain('began before the one before it had ended');
    first.ended_at = Number.POSITIVE_INFINITY;
    expect(found(scene)).toContain('began before the one before it had ended');
  });

  test('an attempt after one whose claim had gone stale', async () => {
    const { scene, sql } = await run({ provider: ['rate_limit', 'accept'] });
    sql('UPDATE attempts SET late = 1 WHERE n = 1');
    expect(found(scene)).toContain('was over before it ended retry_later, yet another began');
  });

  test.each(['accepted', 'unknown', 'rejected'])('an attempt after one that ended %s', async (result) => {
    const { scene, sql } = await run({ provider: ['rate_limit', 'accept'] });
    sql(`UPDATE attempts SET result = '${result}' WHERE n = 1`);
    expect(found(scene)).toContain(`attempt 1 of row 1 ended ${result}, yet another began`);
  });

  test('an attempt after one that put nobody off, and none after one that did', async () => {
    const { scene, sql } = await run({ provider: ['partial', 'accept'] }, 1);
    sql("UPDATE attempts SET detail_json = json_set(detail_json, '$.deferred', json('[]')) WHERE n = 1");
    expect(found(scene)).toContain('attempt 1 of row 1 ended accepted, yet another began');
  });
});
