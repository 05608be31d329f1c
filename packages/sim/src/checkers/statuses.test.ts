import { describe, expect, test } from 'vitest';
import { type Ended, play, type Scenario } from '../cases/scenario.fixture.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { allowedTransitions } from './statuses.ts';

const TO = ['a@example.net', 'b@example.net'];

function found(scene: Ended): string {
  return allowedTransitions(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

async function run(scenario: Partial<Scenario> = {}): Promise<{ scene: Ended; sql: (query: string) => void }> {
  const scene = await play({ meets: [], ...scenario }, async (own) => void (await own.send('key', { to: TO })));
  expect(found(scene)).toBe('');
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  return { scene, sql: (query) => scene.sql(intent).run(query) };
}

describe('allowedTransitions finds', () => {
  test.each(['queued', 'submitted', 'uncertain', 'failed', 'rejected', 'canceled'])(
    'a message that is delivered and becomes %s',
    async (status) => {
      const { scene, sql } = await run();
      sql(`UPDATE messages SET status = '${status}'`);
      expect(found(scene)).toContain(`went delivered to ${status}`);
    },
  );

  test.each(['queued', 'uncertain', 'suppressed', 'canceled'])('an open message that becomes %s', async (status) => {
    const { scene, sql } = await run({ reports: [] });
    sql(`UPDATE messages SET status = '${status}'`);
    expect(found(scene)).toContain(`went submitted to ${status}`);
  });

  test('a recipient that goes back', async () => {
    const { scene, sql } = await run();
    sql("UPDATE deliveries SET status = 'submitted' WHERE address = 'a@example.net'");
    expect(found(scene)).toContain('a@example.net went delivered to submitted');
  });

  test('a recipient that begins as sent', async () => {
    const { scene, sql } = await run();
    sql(`INSERT INTO deliveries (message_rowid, address, field, status, updated_at)
      SELECT rowid, 'c@example.net', 'to', 'delivered', 0 FROM messages`);
    expect(found(scene)).toContain('c@example.net began as delivered');
  });

  test('a message that is not what its recipients make of it', async () => {
    const { scene, sql } = await run();
    sql("UPDATE deliveries SET status = 'bounced' WHERE address = 'a@example.net'");
    expect(found(scene)).toContain('is delivered with bounced, delivered');
    const open = await run({ reports: [] });
    open.sql("UPDATE messages SET status = 'bounced'");
    expect(found(open.scene)).toContain('went submitted to bounced with submitted, submitted');
  });

  test('what a mailbox did in the time that it has forgotten', async () => {
    const { scene, sql } = await run();
    const host = scene.stage.deployment.mailbox(scene.identity().identity_id);
    host.mayBeRestored();
    sql("UPDATE messages SET status = 'queued'");
    host.restore();
    expect(found(scene)).toContain('went delivered to queued');
  });
});
