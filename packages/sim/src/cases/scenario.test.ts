import { describe, expect, test } from 'vitest';
import { play, playToRest } from './scenario.fixture.ts';

/** What a scenario holds itself to. */

describe('a scenario', () => {
  test('fails when a fault struck less often than it was to', async () => {
    const faults = [{ call: /^put /, harm: 'answer_late', ms: 1_000, times: 2 }] as const;
    const played = play({ faults, meets: [] }, async (own) => void (await own.send('key')));
    await expect(played).rejects.toThrow('did not strike as often');
  });

  test('may have reports that never come again: what nobody waits for is not heard', async () => {
    const lost = async (reportsOnce: boolean): Promise<string | undefined> => {
      const scene = await playToRest({ meets: [], reportsOnce }, async (own) => {
        const { delivery, provider } = own.stage.deployment;
        await own.send('key');
        while (provider.reported.length === 0) await own.wait(1);
        delivery.forget();
      });
      const [intent] = scene.intents;
      return intent && scene.row(intent).status;
    };
    expect([await lost(true), await lost(false)]).toEqual(['submitted', 'delivered']);
  });

  test('is broken by an error that is none of the world', async () => {
    const scene = await playToRest(
      {
        meets: [],
        wiring: {
          mailbox: (ports) => ({
            ...ports,
            composer: {
              compose: () => {
                throw new TypeError('x is not a function');
              },
            },
          }),
        },
      },
      async (own) => void (await own.request(own.intend('key'))),
    );
    expect(scene.report.violations).toContainEqual({
      invariant: 'error',
      text: expect.stringContaining('threw TypeError: x is not a function'),
    });
  });

  test('is broken by such an error in a consumer, which its queue would only deliver again', async () => {
    const newToken = (): string => {
      throw new TypeError('x is not a function');
    };
    const scene = await playToRest(
      { meets: [], wiring: { consumer: (world) => ({ ...world, newToken }) }, stepsMax: 20_000 },
      async (own) => void (await own.send('key')),
    );
    expect(scene.report.violations).toContainEqual({
      invariant: 'error',
      text: expect.stringMatching(/^pm-outbound run \d+ threw TypeError: x is not a function$/),
    });
  });
});
