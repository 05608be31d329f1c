import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, JO, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import { accepted, attempt, Run, report, TIMEOUT } from './transport.fixture.ts';

/** The registry of mailboxes with work, by which a cron finds one whose alarm has died (R11). */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

const entry = (): number | undefined => rig.registry.get(rig.owner.identity_id);

describe('the entry', () => {
  test('stands before anything commits that an alarm has to finish', async () => {
    const open = rig.registering.hold();
    const answer = rig.engine.submit(await rig.request());
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(rig.rows('messages')).toBe(0);
    open();
    expect(await answer).toMatchObject({ ok: true });
    expect(entry()).toBe(rig.clock.now);
  });

  test('is not written for every send while it stands', async () => {
    for (let i = 0; i < 10; i++) await rig.send();
    expect(rig.registering.calls).toBe(1);
  });

  test('is one for sends that come at once', async () => {
    const open = rig.registering.hold();
    const requests = await Promise.all(['a', 'b', 'c'].map((key) => rig.request({ key })));
    const answers = Promise.all(requests.map((request) => rig.engine.submit(request)));
    await new Promise((resolve) => setTimeout(resolve, 20));
    open();
    expect((await answers).map(({ ok }) => ok)).toEqual([true, true, true]);
    expect(rig.registering.calls).toBe(1);
    expect(rig.meta('work_since')).toBe(String(entry()));
  });

  test('that cannot be made keeps everything else that leaves work from committing', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, TIMEOUT);
    await rig.advance(MINUTE);
    await rig.engine.poke();
    expect(entry()).toBeUndefined();
    const before = rig.storage.dump();
    rig.registering.failNext(5);
    await expect(rig.engine.cancel(id)).rejects.toThrow('failed');
    await expect(rig.engine.stopSend(id, 'identity_paused')).rejects.toThrow('failed');
    await expect(rig.engine.resolve(id, 'sent')).rejects.toThrow('failed');
    await expect(rig.engine.applyEvent(report(rig, 'delivered'))).rejects.toThrow('failed');
    await expect(
      rig.engine.emitEvent('identity.paused', {}, { id: rig.newId('evt', 1), occurred_at: 1 }),
    ).rejects.toThrow('failed');
    expect(rig.storage.dump()).toBe(before);
  });

  test('whose answer is lost stands, and is made again by the next send', async () => {
    rig.registering.loseNext();
    expect(await rig.submit()).toMatchObject({ ok: false, code: 'unavailable' });
    rig.clock.now += SECOND;
    await rig.send();
    expect(entry()).toBe(rig.clock.now);
  });
});

describe('a poke', () => {
  test('finds work and leaves the entry', async () => {
    const { id } = await rig.send();
    expect(await rig.engine.poke()).toEqual({ work: true });
    new Run(rig, id).claim();
    expect(await rig.engine.poke()).toEqual({ work: true });
    expect(entry()).toBeDefined();
  });

  test('finds events that were not handed on, and debts to the quota', async () => {
    const { id } = await rig.send();
    rig.sink.failNext(1);
    await attempt(rig, id, TIMEOUT);
    expect(await rig.engine.poke()).toEqual({ work: true });
    await rig.advance(MINUTE);
    expect(await rig.engine.poke()).toEqual({ work: false });
    rig.applies.failNext(1);
    await rig.engine.resolve(id, 'sent');
    await rig.advance(0);
    expect(rig.rows('quota_tasks')).toBe(1);
    expect(await rig.engine.poke()).toEqual({ work: true });
  });

  test('takes the entry back when there is nothing to do', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, accepted());
    await rig.advance(SECOND);
    expect(await rig.engine.poke()).toEqual({ work: false });
    expect(rig.registry.size).toBe(0);
    await rig.send();
    expect(entry()).toBe(rig.clock.now);
  });

  test('brings a lost alarm back, and with it the message', async () => {
    const { id } = await rig.send();
    rig.outbound.take();
    rig.skip(HOUR);
    expect(await rig.engine.poke()).toEqual({ work: true });
    await rig.advance(0);
    expect(rig.outbound.take()).toMatchObject([{ message_id: id }]);
  });

  test('does not take the entry from a send under way', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, accepted());
    await rig.advance(SECOND);
    const open = rig.blobs.puts.hold();
    const sending = rig.engine.submit(await rig.request({ key: 'under way' }));
    expect(await rig.engine.poke()).toEqual({ work: false });
    expect(entry()).toBeDefined();
    open();
    expect(await sending).toMatchObject({ ok: true });
  });

  test('does not take the entry that a send makes while it clears', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, accepted());
    await rig.advance(SECOND);
    const open = rig.clearing.hold();
    const poking = rig.engine.poke();
    await rig.send();
    open();
    await poking;
    expect(entry()).toBe(rig.clock.now);
    expect(await rig.engine.poke()).toEqual({ work: true });
  });

  test('that could not clear the entry is followed by one that does', async () => {
    const { id } = await rig.send();
    await attempt(rig, id, accepted());
    await rig.advance(SECOND);
    rig.clearing.failNext(1);
    await expect(rig.engine.poke()).rejects.toThrow('failed');
    expect(entry()).toBeDefined();
    expect(await rig.engine.poke()).toEqual({ work: false });
    expect(entry()).toBeUndefined();
  });

  test.each(['failNext', 'loseNext'] as const)(
    'that could not clear the entry (%s) and a send after it: the entry stands',
    async (how) => {
      const { id } = await rig.send();
      await attempt(rig, id, accepted());
      await rig.advance(SECOND);
      rig.clearing[how](1);
      await expect(rig.engine.poke()).rejects.toThrow();
      rig.clock.now += SECOND;
      await rig.send({ body: { to: [JO] } });
      expect(entry()).toBe(rig.clock.now);
      rig.restart();
      expect(await rig.engine.poke()).toEqual({ work: true });
      expect(entry()).toBe(rig.clock.now);
    },
  );
});

test('an idle mailbox is out of the registry after the daily clean-up at the latest', async () => {
  const { id } = await rig.send();
  await attempt(rig, id, accepted());
  await rig.advance(DAY);
  expect(rig.registry.size).toBe(0);
  expect(rig.registering.calls).toBe(1);
});
