import { describe, expect, test } from 'vitest';
import { type Ended, play, type Scenario } from '../cases/scenario.fixture.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { everythingTold } from './told.ts';

function found(scene: Ended): string {
  return everythingTold(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

async function run(scenario: Partial<Scenario> = {}): Promise<Ended> {
  const scene = await play({ meets: [], ...scenario }, async (own) => void (await own.send('key')));
  expect(found(scene)).toBe('');
  return scene;
}

/** Tells of something once more than it was told. */
function tell(scene: Ended, type: string, data: (id: string) => object): void {
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  scene
    .sql(intent)
    .run(
      `INSERT INTO outbox (seq, event_id, type, payload_json, occurred_at) VALUES (99, 'evt_made_up', ?1, ?2, 0)`,
      type,
      JSON.stringify({ type, data: data(scene.row(intent).id) }),
    );
}

describe('everythingTold finds', () => {
  test.each(['canceled', 'rejected', 'failed', 'uncertain', 'suppressed'])(
    'a message that is told to be %s and is not',
    async (status) => {
      const scene = await run();
      tell(scene, `message.${status}`, (message_id) => ({ message_id }));
      expect(found(scene)).toContain('happened 0 times, told 1 times');
    },
  );

  test.each(['delivered', 'deferred', 'bounced', 'complained'])(
    'a recipient that is told to be %s once too often',
    async (status) => {
      const scene = await run();
      tell(scene, `message.${status}`, (message_id) => ({ message_id, recipient: 'jo@example.net' }));
      expect(found(scene)).toMatch(/happened [01] times, told [12] times/);
    },
  );

  test('a message that is told to be sent twice', async () => {
    const scene = await run();
    tell(scene, 'message.sent', (id) => ({ message: { id } }));
    expect(found(scene)).toContain('told to be sent 2 times');
  });

  test('a message that is told to be sent, and that nobody took', async () => {
    const refused = await run({ provider: ['reject'] });
    tell(refused, 'message.sent', (id) => ({ message: { id } }));
    expect(found(refused)).toContain('was told to be sent, and nobody took it');
  });

  test('a message that is told to be found, and was never uncertain', async () => {
    const scene = await run();
    tell(scene, 'message.reconciled', (message_id) => ({ message_id }));
    expect(found(scene)).toContain('told to be found, and was never uncertain');
  });

  test('what a mailbox told in the time that it has forgotten', async () => {
    const scene = await run();
    const [intent] = scene.intents;
    if (intent === undefined) throw new Error('nothing was sent');
    const host = scene.stage.deployment.mailbox(intent.identity.identity_id);
    host.mayBeRestored();
    tell(scene, 'message.failed', (message_id) => ({ message_id }));
    host.restore();
    expect(found(scene)).toContain('happened 0 times, told 1 times');
  });
});
