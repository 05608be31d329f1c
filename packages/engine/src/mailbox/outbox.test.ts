import { beforeEach, describe, expect, test } from 'vitest';
import { deadline } from '../alarms.ts';
import { DAY, HOUR, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

let ids = 0;

function emit(known = { id: rig.newId('evt', rig.clock.now), occurred_at: rig.clock.now }): Promise<void> {
  return rig.engine.emitEvent('suppression.created', { n: ++ids }, known);
}

describe('an event', () => {
  test('is numbered, stored as it will be sent, and handed on at once', async () => {
    const { id } = await rig.send();
    await rig.engine.cancel(id);
    await rig.advance(0);
    const [event] = rig.events;
    expect(event).toEqual({
      id: event?.id,
      type: 'message.canceled',
      api_version: '2026-10-01',
      occurred_at: '2026-11-30T09:00:00.000Z',
      tenant_id: rig.owner.tenant_id,
      identity_id: rig.owner.identity_id,
      sequence: 1,
      data: { message_id: id },
    });
    expect(rig.dispatched).toEqual([
      { id: event?.id, type: 'message.canceled', ...rig.owner, sequence: 1, occurred_at: rig.clock.now },
    ]);
    if (event === undefined) throw new Error('no event');
    expect(JSON.parse(rig.engine.readEvent(event.id) ?? '')).toEqual(event);
    expect(rig.engine.readEvent(rig.newId('evt', 0))).toBeUndefined();
  });

  test('that is emitted again with its id is left out, and takes no number (I9)', async () => {
    const known = { id: rig.newId('evt', rig.clock.now), occurred_at: rig.clock.now };
    await emit(known);
    await rig.advance(HOUR);
    await emit(known);
    await emit();
    await rig.advance(HOUR);
    expect(rig.dispatched.map(({ sequence }) => sequence)).toEqual([1, 2]);
  });

  test('of the creation is told once, however often the mailbox is made', async () => {
    const told = { id: rig.newId('evt', 5), occurred_at: 5 };
    for (let i = 0; i < 3; i++) {
      rig.restart();
      rig.engine.init(rig.owner);
      await rig.engine.emitEvent('identity.created', { identity: { id: rig.owner.identity_id } }, told);
    }
    expect(rig.eventTypes).toEqual(['identity.created']);
    expect(rig.engine.owner()).toEqual(rig.owner);
  });
});

describe('handing on', () => {
  test('goes in batches of a hundred, in order, each once when all goes well (I9)', async () => {
    for (let i = 0; i < 250; i++) await emit();
    await rig.advance(0);
    expect(rig.sink.calls).toBe(3);
    expect(rig.dispatched.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 250 }, (_, i) => i + 1));
    await rig.advance(HOUR);
    expect(rig.dispatched).toHaveLength(250);
  });

  test('waits 30 s, then twice as long each time, up to 5 minutes, while the other side fails', async () => {
    await emit();
    rig.sink.failNext(7);
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      await rig.advance(0);
      const next = deadline(rig.sql, 'outbox') ?? 0;
      waits.push((next - rig.clock.now) / SECOND);
      rig.clock.now = next;
    }
    expect(waits).toEqual([30, 60, 120, 240, 300, 300, 300]);
    await rig.advance(0);
    expect(rig.dispatched).toHaveLength(1);
    expect(deadline(rig.sql, 'outbox')).toBeNull();
  });

  test('begins with 30 s again after it has worked', async () => {
    await emit();
    rig.sink.failNext(3);
    await rig.advance(10 * MINUTE);
    expect(rig.dispatched).toHaveLength(1);
    await emit();
    rig.sink.failNext(1);
    await rig.advance(0);
    expect(deadline(rig.sql, 'outbox')).toBe(rig.clock.now + 30 * SECOND);
  });

  test('whose answer is lost happens again with the same ids (I9)', async () => {
    await emit();
    rig.sink.loseNext();
    await rig.advance(MINUTE);
    expect(rig.dispatched).toHaveLength(2);
    expect(rig.dispatched[0]).toEqual(rig.dispatched[1]);
  });

  test.each(['outbox.before_dispatch', 'outbox.after_dispatch'] as const)(
    'that dies at %s happens again, at least once (I9)',
    async (mark) => {
      await emit();
      rig.dieAt(mark);
      await rig.advance(0);
      rig.restart();
      await rig.advance(MINUTE);
      expect(new Set(rig.dispatched.map(({ id }) => id)).size).toBe(1);
      await rig.advance(HOUR);
      expect(rig.dispatched).toHaveLength(mark === 'outbox.before_dispatch' ? 1 : 2);
    },
  );

  test('does not forget what comes while it is under way', async () => {
    await emit();
    const open = rig.sink.hold();
    const alarm = rig.advance(0);
    await emit();
    open();
    await alarm;
    await rig.advance(SECOND);
    expect(rig.dispatched.map(({ sequence }) => sequence)).toEqual([1, 2]);
  });

  test('that fails in its second batch does not repeat the first', async () => {
    for (let i = 0; i < 150; i++) await emit();
    rig.sink.failNext(1, 1);
    await rig.advance(0);
    expect(rig.dispatched).toHaveLength(100);
    await rig.advance(MINUTE);
    expect(rig.dispatched.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 150 }, (_, i) => i + 1));
  });
});

test('events are kept for their year, and the sequence goes on after them', async () => {
  await emit();
  await rig.advance(364 * DAY);
  expect(rig.rows('outbox')).toBe(1);
  await rig.advance(3 * DAY);
  expect(rig.rows('outbox')).toBe(0);
  await emit();
  expect(rig.events[0]?.sequence).toBe(2);
});

test('an event that was never handed on is not thrown away', async () => {
  await emit();
  rig.sink.failNext(1_000_000);
  rig.clock.now += 400 * DAY;
  await rig.advance(0);
  expect(rig.rows('outbox')).toBe(1);
});
