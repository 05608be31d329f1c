import { describe, expect, test } from 'vitest';
import { type Ended, playToRest, type Scene, SECOND } from './scenario.fixture.ts';

/** P7 and I9: events of a mailbox whose storage was put back, as its subscribers hear them. */

interface Heard {
  id: string;
  sequence: number;
  type: string;
}

function heard({ stage }: Scene): Heard[] {
  return stage.deployment.subscribers.receivers.log.map(({ body }) => JSON.parse(body) as Heard);
}

/** A mail before the time to which the storage goes back, one that is forgotten by that, and one afterwards. */
function play(forgotten: (own: Scene) => Promise<void>): Promise<Ended> {
  return playToRest({ meets: [] }, async (own) => {
    const { tenant_id, identity_id } = own.identity();
    const mailbox = own.stage.deployment.mailbox(identity_id);
    await own.stage.deployment.subscribers.add({ tenant_id, plan: ['take'] });
    await own.send('before');
    await own.wait(20 * SECOND);
    mailbox.mayBeRestored();
    await forgotten(own);
    mailbox.restore();
    await own.wait(20 * SECOND);
    await own.send('afterwards');
    await own.wait(20 * SECOND);
  });
}

describe('P7 a mailbox that was put back', () => {
  test('P7 I9 tells subscribers of what it does then under numbers above all that they have heard', async () => {
    let last = 0;
    const scene = await play(async (own) => {
      await own.send('forgotten');
      await own.wait(20 * SECOND);
      last = Math.max(...heard(own).map(({ sequence }) => sequence));
    });
    const all = heard(scene);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(new Set(all.map(({ sequence }) => sequence)).size).toBe(all.length);
    expect(last).toBeGreaterThan(2);
    const [, , afterwards] = scene.intents;
    expect(afterwards && scene.row(afterwards).status).toBe('delivered');
    const ids = afterwards === undefined ? [] : scene.events(afterwards);
    expect(ids).toEqual(['message.sent', 'message.delivered']);
    expect(all.filter(({ sequence }) => sequence > last).map(({ type }) => type)).toEqual(expect.arrayContaining(ids));
    expect(scene.report.violations.filter(({ invariant }) => ['I1', 'I7', 'I9', 'V10'].includes(invariant))).toEqual(
      [],
    );
  });
});
