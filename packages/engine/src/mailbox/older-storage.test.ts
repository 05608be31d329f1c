import { describe, expect, test } from 'vitest';
import { DAY, JO, MailboxRig } from './mailbox.fixture.ts';

/** P3: storage that older code has left behind, found by the code of today. */

const YEAR = 365 * DAY;

function left(schema: number): MailboxRig {
  const rig = new MailboxRig();
  rig.sql.run("UPDATE meta SET v = ? WHERE k = 'schema_version'", String(schema));
  return rig;
}

describe('a mailbox that has noted no clean-ups (P3)', () => {
  test.each([
    ['holds mail', true],
    ['is empty', false],
  ])('and %s does not believe a clock that runs a year ahead when it is found (K1)', async (_name, mail) => {
    const rig = left(3);
    const first = mail ? await rig.submit({ key: 'k', body: { to: [JO] } }) : undefined;
    rig.sql.run("DELETE FROM meta WHERE k IN ('cleaned_before', 'cleaned_last')");
    rig.clock.now += YEAR;
    rig.restart();
    if (first !== undefined) {
      expect(await rig.submit({ key: 'other', body: { to: [JO] } })).toMatchObject({ ok: true, deduplicated: false });
    }
    const ahead = first ?? (await rig.submit({ key: 'k', body: { to: [JO] } }));
    if (!ahead.ok) throw new Error(ahead.code);
    await rig.advance(DAY);
    rig.clock.now -= YEAR;
    const again = await rig.submit({ key: 'k', body: { to: [JO] } });
    expect(again).toMatchObject({ ok: true, deduplicated: true, message: { id: ahead.message.id } });
  });

  test('goes on from what it last stored', async () => {
    const rig = left(3);
    await rig.advance(10 * DAY);
    await rig.send({ key: 'k', body: { to: [JO] } });
    const now = String(rig.clock.now);
    rig.sql.run("DELETE FROM meta WHERE k IN ('cleaned_before', 'cleaned_last')");
    rig.restart();
    expect([rig.meta('cleaned_before'), rig.meta('cleaned_last')]).toEqual([now, now]);
  });
});
