import { describe, expect, test } from 'vitest';
import { type Ended, play, playToRest, type Scenario, type Scene, SECOND } from '../cases/scenario.fixture.ts';
import { endsTrue } from './ends.ts';
import { evidenceOf } from './evidence.fixture.ts';

/** What a wrong product would have written down is put into the rows of a run that was right. */

const TO = ['a@example.net', 'b@example.net'];

const sendOne = async (own: Scene): Promise<void> => void (await own.send('key', { to: TO }));

function run(scenario: Partial<Scenario>, act = sendOne): Promise<Ended> {
  return play({ meets: [], ...scenario }, act);
}

function setStatus(scene: Ended, status: string, address = 'a@example.net'): void {
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  scene.sql(intent).run('UPDATE deliveries SET status = ? WHERE address = ?', status, address);
}

function found(scene: Ended): string {
  return endsTrue(evidenceOf(scene))
    .map(({ text }) => text)
    .join('\n');
}

describe('endsTrue finds a recipient that', () => {
  test.each(['rejected', 'failed', 'suppressed', 'uncertain', 'bounced', 'complained'])(
    'was taken, and is %s without a report',
    async (status) => {
      const scene = await run({ reports: [] });
      expect(found(scene)).toBe('');
      setStatus(scene, status);
      expect(found(scene)).toContain(`went submitted to ${status}`);
    },
  );

  test.each(['submitted', 'deferred', 'delivered', 'bounced', 'complained'])(
    'was never taken, and is %s',
    async (status) => {
      const scene = await run({ provider: ['reject'] });
      setStatus(scene, status);
      expect(found(scene)).toContain(`went rejected to ${status}`);
    },
  );

  test('was never taken, and is as a report says that nobody made', async () => {
    const scene = await run({ provider: ['reject'] });
    const [intent] = scene.intents;
    if (intent === undefined) throw new Error('nothing was sent');
    scene
      .sql(intent)
      .run('UPDATE deliveries SET provider_event_ids_json = \'["made-up"]\' WHERE address = ?', TO[0] ?? '');
    expect(found(scene)).toContain('took in made-up, which is no report about it');
  });

  test('is uncertain although the answer to each call is known', async () => {
    const scene = await run({ provider: ['lose_before_accepting'], reports: [] });
    expect(found(scene)).toBe('');
    const [intent] = scene.intents;
    if (intent !== undefined) scene.sql(intent).run("UPDATE attempts SET result = 'rejected'");
    expect(found(scene)).toContain('went queued to uncertain, and the answer to each call is known');
  });

  test('was uncertain and has failed, though nobody said that it was not sent', async () => {
    const scene = await run({ provider: ['lose_before_accepting'], reports: [] });
    setStatus(scene, 'failed');
    expect(found(scene)).toContain('went uncertain to failed, and nobody said so');
  });

  test('was settled by a person, and stayed as it was', async () => {
    const scene = await run({ provider: ['lose_before_accepting'], reports: [] }, async (own) => {
      const intent = await own.send('key', { to: TO });
      await own.wait(40 * SECOND);
      expect(await own.remote().resolve(own.row(intent).id, 'sent')).toMatchObject({ ok: true });
    });
    expect(found(scene)).toBe('');
    scene.stage.deployment.watcher.said.clear();
    expect(found(scene)).toContain('went uncertain to submitted, and no provider took it');
    const [intent] = scene.intents;
    if (intent !== undefined) scene.sql(intent).run("DELETE FROM sim_trace WHERE old = 'uncertain'");
    expect(found(scene)).toContain("was sent by a person's word, and nothing became submitted");
  });

  test('is by the table not what its reports make of it', async () => {
    const scene = await run({ reports: ['delivered', 'bounced_hard'] });
    setStatus(scene, 'delivered');
    expect(found(scene)).toContain('went bounced to delivered, and nothing reported it');
  });

  test('has changed although its report changes nothing, or has not though it does', async () => {
    const drop = { mailbox: { run: (query: string) => /^UPDATE deliveries SET status = \?1/.test(query) } };
    const { broken } = await import('../mutant.fixture.ts');
    const scene = await playToRest({ meets: [], wiring: broken.wiring(undefined, drop.mailbox, undefined) }, sendOne);
    expect(found(scene)).toContain('was reported delivered and stayed submitted');
  });

  test('has a report that names it and was never heard', async () => {
    const scene = await run({});
    const [intent] = scene.intents;
    if (intent !== undefined) scene.sql(intent).run("UPDATE deliveries SET provider_event_ids_json = '[]'");
    expect(found(scene)).toContain('was reported delivered, and never heard of it');
  });

  test.each([['bounced_hard'], ['complained']] as const)('was reported %s, and is on no list', async (report) => {
    const scene = await run({ reports: [report] });
    scene.stage.deployment.directory.run('DELETE FROM suppressions');
    expect(found(scene)).toContain('a@example.net is on no list');
  });
});
