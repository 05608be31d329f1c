import { describe, expect, test } from 'vitest';
import { ageStorage } from './older-storage.fixture.ts';
import { HOUR, MINUTE, play, SECOND } from './scenario.fixture.ts';

/** P3: the code of today finds objects in the middle of their lives, as code of an earlier schema has left them. */

/** What each send comes to before the storage is found: the third waits for a pointer, the fourth for its outcome. */
const FAULTS = [
  { crash: 'consume.message_read', nth: 2 },
  { call: /^send to pm-outbound/, harm: 'lost', nth: 3 },
  { call: /^outcome accepted/, harm: 'late', ms: 20 * SECOND, nth: 2 },
] as const;

describe('P3 objects of an earlier schema that have lived', () => {
  test.each([
    ['one step before', { mailbox: 1, quota: 0 }],
    ['two steps before', { mailbox: 2, quota: 1 }],
    ['as the first code left them', { mailbox: 3, quota: 1 }],
  ])(
    'P3 %s: what is sent, in doubt, queued and claimed goes on, and each key has its answer',
    async (_when, missing) => {
      const scene = await play({ faults: FAULTS, meets: ['P3', 'C5', 'E2'], storm: HOUR }, async (own) => {
        const sent = await own.send('sent');
        await own.wait(10 * SECOND);
        const inDoubt = await own.send('in doubt');
        await own.wait(10 * MINUTE);
        const queued = await own.send('queued');
        const claimed = await own.send('claimed');
        await own.wait(3 * SECOND);
        const before = [sent, inDoubt, queued, claimed];
        expect(before.map((intent) => own.row(intent).status)).toEqual(['delivered', 'uncertain', 'queued', 'queued']);
        const open =
          'SELECT 1 FROM attempts a JOIN messages m ON m.rowid = a.message_rowid WHERE m.id = ? AND ended_at IS NULL';
        expect(own.sql(sent).all(open, own.row(claimed).id)).toHaveLength(1);
        const ids = before.map((intent) => own.row(intent).id);
        const schema = (): unknown => own.sql(sent).first("SELECT v FROM meta WHERE k = 'schema_version'");
        const newest = schema();

        ageStorage(own, missing);
        expect(schema()).not.toEqual(newest);
        expect(own.stage.universe.cases.has('P3')).toBe(false);
        for (const [index, intent] of before.entries()) {
          expect(await own.request(intent)).toMatchObject({
            ok: true,
            deduplicated: true,
            message: { id: ids[index] },
          });
        }
        expect(schema()).toEqual(newest);
        expect(own.stage.universe.cases.has('P3')).toBe(true);
        expect(await own.remote().resolve(own.row(inDoubt).id, 'not_sent')).toMatchObject({ ok: true });
        await own.send('after');
        await own.wait(20 * MINUTE);
      });
      expect(scene.intents.map((intent) => scene.row(intent).status)).toEqual([
        'delivered',
        'failed',
        'delivered',
        'delivered',
        'delivered',
      ]);
      expect(scene.intents.map((intent) => scene.calls(intent).length)).toEqual([1, 0, 1, 1, 1]);
      // The cap has counted what was handed over, also where a person says later that it was not sent.
      expect(scene.books).toEqual({ used: 4, held: 0, counted: 5 });
    },
  );
});
