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

/**
 * A mail before the time to which the storage goes back, one that is forgotten by that, and one afterwards.
 *
 * @param before what happens between the first mail and that time
 */
function play(before: (own: Scene) => Promise<void>): Promise<Ended> {
  return playToRest({ meets: [] }, async (own) => {
    const { tenant_id, identity_id } = own.identity();
    const mailbox = own.stage.deployment.mailbox(identity_id);
    await own.stage.deployment.subscribers.add({ tenant_id, plan: ['take'] });
    await own.send('first');
    await own.wait(20 * SECOND);
    await before(own);
    mailbox.mayBeRestored();
    await own.wait(100 * SECOND);
    await own.send('forgotten');
    await own.wait(20 * SECOND);
    mailbox.restore();
    await own.wait(20 * SECOND);
    await own.send('afterwards');
    await own.wait(20 * SECOND);
  });
}

/** The books of the quota know more than a mailbox that has forgotten; everything else has to hold. */
function violated({ report }: Ended): string[] {
  return report.violations.filter(({ invariant }) => invariant !== 'I4').map(({ text }) => text);
}

describe('P7 a mailbox that was put back', () => {
  test('P7 I9 tells of what it does then under numbers above all that were heard', async () => {
    const scene = await play(async () => undefined);
    const all = heard(scene);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(new Set(all.map(({ sequence }) => sequence)).size).toBe(all.length);
    const afterwards = scene.intents[2];
    expect(afterwards && scene.row(afterwards).status).toBe('delivered');
    // Two of each mail, and in between that the forgotten one is uncertain and was found.
    expect(all.slice(0, 4).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(all.length).toBeGreaterThan(6);
    expect(violated(scene)).toEqual([]);
  });

  test('P7 I9 keeps the number and the bytes of an event that was told in the time that is forgotten', async () => {
    const scene = await play(async (own) => {
      const { universe } = own.stage;
      // Sent and delivered, and the index does not know yet when the storage is remembered.
      universe.outage(/^directory for mailbox/, 25 * SECOND, []);
      own.pursue(own.intend('second')).catch(() => undefined);
      await own.wait(24 * SECOND);
      const { sql } = own.stage.deployment.mailbox(own.identity().identity_id);
      expect(sql.all('SELECT seq FROM outbox WHERE dispatched_at IS NULL')).toEqual([{ seq: 3 }, { seq: 4 }]);
    });
    const told = new Map(
      scene.stage.deployment.subscribers.receivers.log.map((post) => [post.event_id as string, post.body]),
    );
    const { sql } = scene.stage.deployment.mailbox(scene.identity().identity_id);
    const rows = sql.all<{ event_id: string; seq: number; payload_json: string }>(
      'SELECT event_id, seq, payload_json FROM outbox ORDER BY seq',
    );
    expect(rows.map(({ seq }) => seq).slice(0, 4)).toEqual([1, 2, 3, 4]);
    for (const { event_id, seq, payload_json } of rows) {
      expect(told.get(event_id), `event ${seq}`).toBe(payload_json);
      expect((JSON.parse(payload_json) as Heard).sequence).toBe(seq);
    }
    expect(violated(scene)).toEqual([]);
  });
});
