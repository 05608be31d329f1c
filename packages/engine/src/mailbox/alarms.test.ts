import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { deadline, dueDeadlines, earliestDeadline } from '../alarms.ts';
import { DAY, HOUR, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import { accepted, attempt, Run, retryLater } from './transport.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

function setRow(purpose: string, at: number): void {
  rig.sql.run('INSERT OR REPLACE INTO meta (k, v) VALUES (?, ?)', `alarm:${purpose}`, String(at));
}

const fire = async (): Promise<void> => {
  rig.storage.alarmAt = null;
  await rig.engine.alarm();
};

describe('the one alarm', () => {
  test('stands at the earliest of the rows, which are the truth', async () => {
    await rig.send();
    expect(rig.storage.alarmAt).toBe(earliestDeadline(rig.sql));
    expect(rig.storage.alarmAt).toBe(rig.clock.now + 5 * MINUTE);
    await rig.advance(2 * DAY);
    expect(rig.storage.alarmAt).toBe(earliestDeadline(rig.sql));
  });

  test.each<[string, (id: MessageId) => unknown]>([
    ['a read', (id) => rig.engine.getMessage(id, { text: false, html: false }, false)],
    ['a list', () => rig.engine.listMessages({}, 10, null, false)],
    ['a claim', (id) => new Run(rig, id).begin()],
    ['a question of the quota', (id) => rig.engine.sendState(id)],
    ['a poke', () => rig.engine.poke()],
    ['a new instance', () => rig.restart()],
  ])('that the platform has lost is put back by %s (E5)', async (_what, enter) => {
    const { id } = await rig.send();
    rig.skip(DAY);
    enter(id);
    expect(rig.storage.alarmAt).toBe(rig.clock.now);
  });

  test('that a new instance finds missing is put back even before it is due (E5)', async () => {
    await rig.send();
    const at = rig.storage.alarmAt;
    rig.skip(MINUTE);
    rig.restart();
    expect(rig.storage.alarmAt).toBe(at);
  });

  test('is not set again while it is known to stand', async () => {
    await rig.send();
    rig.storage.alarmAt = -1;
    await rig.engine.poke();
    expect(rig.storage.alarmAt).toBe(-1);
  });

  test('that comes too early, twice or for nothing changes nothing (E5)', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, accepted());
    await rig.advance(MINUTE);
    const before = rig.storage.dump();
    for (let i = 0; i < 3; i++) await fire();
    expect(rig.storage.dump()).toBe(before);
    expect(rig.storage.alarmAt).toBe(earliestDeadline(rig.sql));
  });

  test('that comes hours late does everything that fell due (E5)', async () => {
    const claimed = await rig.send();
    new Run(rig, claimed.id).claim();
    const waiting = await rig.send();
    rig.outbound.take();
    rig.clock.now += 5 * HOUR;
    await fire();
    expect(rig.message(claimed.id).status).toBe('uncertain');
    expect(rig.outbound.take()).toMatchObject([{ message_id: waiting.id }]);
  });

  test('drops a purpose that this version does not know', async () => {
    setRow('from_the_future', rig.clock.now);
    rig.restart();
    await rig.advance(SECOND);
    expect(deadline(rig.sql, 'from_the_future')).toBeNull();
    expect(rig.storage.alarmAt).toBe(earliestDeadline(rig.sql));
  });

  test('serves the purpose that is overdue the longest first', () => {
    setRow('b', 20);
    setRow('a', 30);
    setRow('c', 10);
    setRow('d', 40);
    expect(dueDeadlines(rig.sql, 30).map(({ purpose }) => purpose)).toEqual(['c', 'b', 'a']);
  });
});

describe('one alarm, three purposes due, one of which fails (E6)', () => {
  let claimed: MessageId;
  let waiting: MessageId;

  beforeEach(async () => {
    ({ id: waiting } = await rig.send());
    ({ id: claimed } = await rig.send());
    new Run(rig, claimed).claim();
    rig.clock.now += 6 * MINUTE;
    rig.outbound.take();
    const soon = rig.clock.now;
    setRow('outbox', soon - 2 * SECOND);
    setRow('claim', soon - SECOND);
    setRow('dispatch', soon - SECOND);
    const other = await rig.send();
    await rig.engine.cancel(other.id);
    rig.outbound.take();
  });

  /** Makes the work on claims fail until the returned function is called. */
  function breakClaims(): () => void {
    rig.storage.beforeStatement = (_query, bindings) => {
      if (bindings[0] === 'claim:') throw new Error('disk I/O error');
    };
    return () => {
      rig.storage.beforeStatement = () => {};
    };
  }

  test('the others have their turn, the failed one stays armed, and the handler does not throw', async () => {
    const mend = breakClaims();
    for (let failures = 1; failures <= 7; failures++) {
      await fire();
      const earliest = earliestDeadline(rig.sql);
      expect(rig.storage.alarmAt).not.toBeNull();
      expect(rig.storage.alarmAt).toBe(earliest);
      expect(deadline(rig.sql, 'claim')).toBe(rig.clock.now + 30 * SECOND);
      expect(rig.message(claimed).status).toBe('queued');
      if (failures === 1) {
        expect(rig.dispatched.map(({ type }) => type)).toEqual(['message.canceled']);
        expect(rig.outbound.take()).toMatchObject([{ message_id: waiting }]);
      }
      rig.clock.now = Math.max(rig.clock.now, deadline(rig.sql, 'claim') ?? 0);
    }
    expect(rig.logged.filter((event) => event === 'mailbox_alarm_failed')).toHaveLength(7);
    mend();
    await fire();
    expect(rig.message(claimed)).toMatchObject({ status: 'uncertain', status_reason: 'transport_connection_lost' });
    expect(rig.storage.alarmAt).toBe(earliestDeadline(rig.sql));
  });

  test('a queue that fails does not keep claims and events waiting (E2)', async () => {
    rig.outbound.sends.failNext(1);
    await fire();
    expect(rig.message(claimed).status).toBe('uncertain');
    // What came of the claim is told as well, at the latest by the next alarm.
    await rig.advance(SECOND);
    expect(rig.dispatched.map(({ type }) => type)).toEqual(['message.canceled', 'message.uncertain']);
    expect(rig.outbound.take()).toEqual([]);
    await rig.advance(30 * SECOND);
    expect(rig.outbound.take()).toMatchObject([{ message_id: waiting }]);
  });

  test('an event index that fails does not keep the queue waiting', async () => {
    rig.sink.failNext(1);
    await fire();
    expect(rig.outbound.take()).toMatchObject([{ message_id: waiting }]);
    expect(rig.message(claimed).status).toBe('uncertain');
  });
});

describe('the dispatch alarm', () => {
  test('queues again only what nobody has claimed (E1, E4)', async () => {
    const lost = await rig.send();
    const claimed = await rig.send();
    const sent = await rig.send();
    new Run(rig, claimed.id).claim();
    await attempt(rig, sent.id, accepted());
    rig.outbound.take();
    await rig.advance(4 * MINUTE + 59 * SECOND);
    expect(rig.outbound.take()).toEqual([]);
    await rig.advance(SECOND);
    expect(rig.outbound.take()).toMatchObject([{ kind: 'send', ...rig.owner, message_id: lost.id }]);
  });

  test('goes on every five minutes as long as nothing happens (E7)', async () => {
    const { id } = await rig.send();
    rig.outbound.take();
    await rig.advance(HOUR);
    expect(rig.outbound.take()).toHaveLength(12);
    await attempt(rig, id, accepted());
    await rig.advance(HOUR);
    expect(rig.outbound.take()).toEqual([]);
  });

  test.each(['dispatch.before_send', 'dispatch.after_send'] as const)(
    'that dies at %s comes again: a pointer too many is harmless (E1, E4)',
    async (mark) => {
      const { id } = await rig.send();
      rig.outbound.take();
      rig.dieAt(mark);
      await rig.advance(5 * MINUTE);
      rig.restart();
      await rig.advance(MINUTE);
      expect(rig.outbound.take()).toHaveLength(mark === 'dispatch.before_send' ? 1 : 2);
      expect(new Run(rig, id).begin().kind).toBe('claimed');
      expect(new Run(rig, id).begin().kind).toBe('already_claimed');
    },
  );

  test('does not bring a message back that left while its pointer was being sent', async () => {
    const { id } = await rig.send();
    const open = rig.outbound.sends.hold();
    rig.clock.now += 5 * MINUTE;
    const alarm = fire();
    await attempt(rig, id, accepted());
    open();
    await alarm;
    expect(rig.meta(`dispatch:${id}`)).toBeUndefined();
    expect(rig.engine.sendState(id)).toBe('ended');
  });

  test('lets a message wait that was put off while the pointer of another was being sent', async () => {
    await rig.send();
    const later = await rig.send();
    const open = rig.outbound.sends.hold();
    rig.clock.now += 5 * MINUTE;
    const alarm = fire();
    const { delay_ms: delay } = await attempt(rig, later.id, retryLater('quota'));
    const putOff = rig.meta(`dispatch:${later.id}`);
    rig.outbound.take();
    open();
    await alarm;
    expect(rig.outbound.take().filter((job) => job.kind === 'send' && job.message_id === later.id)).toEqual([]);
    expect(rig.meta(`dispatch:${later.id}`)).toBe(putOff);
    expect(Number(putOff)).toBe(rig.clock.now + (delay ?? 0));
  });

  test('stands at the first of several that will be due', async () => {
    const first = await rig.send();
    await attempt(rig, first.id, retryLater('quota'));
    await rig.advance(30 * SECOND);
    await rig.send();
    await rig.advance(4 * MINUTE + 30 * SECOND);
    expect(deadline(rig.sql, 'dispatch')).toBe(rig.clock.now + 30 * SECOND);
  });
});
