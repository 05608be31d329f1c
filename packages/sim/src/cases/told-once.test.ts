import { describe, expect, test } from 'vitest';
import { MINUTE, play, SECOND } from './scenario.fixture.ts';

/** I9: a message of which one call was taken and the next one is in doubt is told to be sent once. */

describe('I9 a relay takes a message for some, and nobody knows of the others', () => {
  test('I9 a person says that it was sent: that is no second message', async () => {
    const scene = await play(
      { provider: ['partial', 'server_error'], meets: ['T4'], storm: 40 * MINUTE },
      async (own) => {
        const intent = await own.send('key', { to: ['a@example.net', 'b@example.net', 'c@example.net'] }, 1);
        await own.wait(20 * MINUTE);
        expect(own.deliveries(intent)['c@example.net']).toBe('uncertain');
        expect(await own.remote(1).resolve(own.row(intent).id, 'sent')).toMatchObject({ ok: true });
        await own.wait(SECOND);
      },
    );
    const [intent] = scene.intents;
    expect(intent && scene.events(intent).filter((type) => type === 'message.sent')).toHaveLength(1);
  });
});
