import { describe, expect, test } from 'vitest';
import { playToRest, SECOND } from './scenario.fixture.ts';

/** P7 and I1: keys of the time that a mailbox has forgotten, when its storage was put back. */

describe('P7 a key that a mailbox has forgotten', () => {
  test('P7 I1 makes no second email: its repeat is refused until the ledger is whole, and then hears of the first', async () => {
    const scene = await playToRest({ meets: [] }, async (own) => {
      const mailbox = own.stage.deployment.mailbox(own.identity().identity_id);
      await own.send('first');
      await own.wait(20 * SECOND);
      mailbox.mayBeRestored();
      const forgotten = await own.send('forgotten');
      await own.wait(20 * SECOND);
      mailbox.restore();
      // Nothing has told the mailbox yet but this request itself.
      expect(await own.request(forgotten)).toMatchObject({ ok: false, code: 'unavailable' });
      await own.wait(60 * SECOND);
      await own.pursue(forgotten);
      await own.wait(20 * SECOND);
    });
    expect(scene.stage.deployment.provider.log.map(({ recipients }) => recipients)).toEqual([
      ['jo@example.net'],
      ['jo@example.net'],
    ]);
    const [, forgotten] = scene.intents;
    expect(forgotten?.answers).toHaveLength(2);
    expect(forgotten?.answers[1]).toEqual(forgotten?.answers[0]);
    // The books of the quota know more than a mailbox that has forgotten; everything else has to hold.
    expect(scene.report.violations.filter(({ invariant }) => invariant !== 'I4')).toEqual([]);
  });
});
