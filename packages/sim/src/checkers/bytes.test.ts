import { describe, expect, test } from 'vitest';
import { type Ended, play } from '../cases/scenario.fixture.ts';
import { sameBytes } from './bytes.ts';
import { evidenceOf } from './evidence.fixture.ts';

function found(scene: Ended): string {
  return sameBytes(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

/** Two messages of a test tenant, each with a copy for another of its mailboxes. */
async function run(): Promise<{ scene: Ended; sql: (query: string, index?: number) => void }> {
  const scene = await play({ meets: [], tenants: [{ mode: 'test', identities: 2 }] }, async (own) => {
    for (const key of ['one', 'two']) await own.send(key, { to: [own.identity(1).address] });
  });
  expect(found(scene)).toBe('');
  const sql = (query: string, index = 0): void =>
    scene.stage.deployment.mailbox(scene.identity(index).identity_id).sql.run(query);
  return { scene, sql };
}

describe('sameBytes finds', () => {
  test('a row that agrees with the call, and both are not what was stored before the commit', async () => {
    const { scene, sql } = await run();
    for (const call of scene.stage.deployment.provider.log) call.sha256 = 'other';
    sql("UPDATE messages SET raw_sha256 = 'other'");
    sql("UPDATE messages SET raw_sha256 = 'other'", 1);
    expect(found(scene)).toContain('says that it has other bytes');
    expect(found(scene)).toContain('was handed over with other bytes');
    expect(found(scene)).toContain('arrived with other bytes than');
  });

  test('a copy that was written over after the commit', async () => {
    const { scene } = await run();
    const { objects } = scene.stage.deployment.store;
    for (const object of objects.values()) object.bytes = Uint8Array.from([...object.bytes, 0x21]);
    expect(found(scene)).toContain('is stored with other bytes than it was committed with');
  });

  test('a message that was committed before its copy was stored', async () => {
    const { scene, sql } = await run();
    sql('UPDATE sim_composed SET sha256 = NULL');
    expect(found(scene)).toContain('was committed before its copy was stored');
  });

  test('a copy that has the bytes of another message, or of none', async () => {
    const { scene, sql } = await run();
    sql("UPDATE messages SET raw_sha256 = (SELECT MAX(raw_sha256) FROM messages WHERE direction = 'inbound')", 1);
    expect(found(scene)).toContain('arrived with other bytes than');
    sql("UPDATE messages SET rfc_message_id = 'nobody@agents.example'", 1);
    expect(found(scene)).toContain('is a copy of nothing that was sent');
  });
});
