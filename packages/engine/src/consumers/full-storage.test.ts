import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, JO, KIM, MINUTE } from '../mailbox/mailbox.fixture.ts';
import { Service } from './service.fixture.ts';

/** P5: the object store takes nothing more, or the mailbox's own database does, at each step of a send. */

let service: Service;
let id: MessageId;

beforeEach(async () => {
  service = await Service.create();
  ({ id } = await service.send({ to: [JO, KIM] }));
  service.takeSends();
});

const ACK = { kind: 'ack' };
const status = (): string => service.rig.message(id).status;
const calls = (): number => service.transports.cloudflare.calls.length;

/** A send under one key that must not be accepted: what it says. */
async function refused(): Promise<string> {
  const error = await service.send({ to: [JO] }, 'k-full').catch((thrown: unknown) => thrown);
  await service.rig.settle();
  if (!(error instanceof Error)) throw new Error('accepted');
  return error.message;
}

/** The key of a refused send is free, and its message leaves like any other. */
async function expectGoesOn(): Promise<void> {
  const messages = service.rig.rows('messages');
  const before = calls();
  const again = await service.send({ to: [JO] }, 'k-full');
  expect(service.rig.rows('messages')).toBe(messages + 1);
  expect(service.takeSends()).toEqual([{ id: again.id, delay_ms: 0 }]);
  expect(await service.consume(again.id)).toEqual(ACK);
  expect(calls()).toBe(before + 1);
  expect(service.rig.message(again.id).status).toBe('submitted');
}

/** Every row but the counters of row numbers, which a debt that was paid at once has used too. */
function rows(): Record<string, object[]> {
  const { sql } = service.rig;
  const names = sql.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'");
  const tables = names.map(({ name }) => name).filter((name) => name !== 'sqlite_sequence');
  return Object.fromEntries(tables.map((name) => [name, sql.all(`SELECT * FROM "${name}"`)]));
}

describe('an object store that is full', () => {
  test('refuses new sends and keeps nothing of them; accepted mail leaves, and later all is well (P5)', async () => {
    const { rig } = service;
    const before = [rows(), rig.blobs.keys, rig.quotaBooks];
    rig.blobs.puts.failNext(Number.POSITIVE_INFINITY);
    for (let n = 0; n < 3; n++) {
      expect(await refused()).toBe('refused: {"ok":false,"code":"unavailable","details":{"step":"store"}}');
    }
    expect([rows(), rig.blobs.keys, rig.quotaBooks]).toEqual(before);
    expect(rig.outbound.sent).toEqual([]);
    expect(await service.consume(id)).toEqual(ACK);
    expect([status(), calls()]).toEqual(['submitted', 1]);
    rig.blobs.puts.failNext(0);
    await expectGoesOn();
  });
});

/** The mailbox's database takes no statement that writes, as SQLite answers when there is no room. */
function fill(): { free: () => void; writes: () => number } {
  let writes = 0;
  service.rig.storage.beforeStatement = (query) => {
    if (!/^\s*(INSERT|UPDATE|DELETE|REPLACE)/i.test(query)) return;
    writes++;
    throw new Error('database or disk is full: SQLITE_FULL');
  };
  const free = (): void => {
    service.rig.storage.beforeStatement = () => {};
  };
  return { free, writes: () => writes };
}

describe('a mailbox whose database is full', () => {
  test('keeps nothing of a send, and gives its count and its hold back (P5)', async () => {
    const { rig } = service;
    const books = rig.quotaBooks;
    const before = rig.storage.dump();
    const asked = rig.reserves.calls;
    const full = fill();
    expect(await refused()).toContain('SQLITE_FULL');
    expect(full.writes()).toBeGreaterThan(0);
    expect(rig.reserves.calls).toBe(asked + 1);
    expect(rig.storage.dump()).toBe(before);
    full.free();
    await rig.advance(11 * MINUTE);
    await rig.quota.alarm();
    expect(rig.quotaBooks).toEqual(books);
    await rig.advance(26 * HOUR);
    expect(rig.blobs.keys).toEqual([expect.stringContaining(id)]);
  });

  test('accepts again under the same key when there is room (P5)', async () => {
    const full = fill();
    expect(await refused()).toContain('SQLITE_FULL');
    full.free();
    await expectGoesOn();
  });

  test('gives no claim: nothing is called, the queue brings the pointer again, and it leaves once (P5)', async () => {
    const full = fill();
    for (let n = 0; n < 3; n++) await expect(service.consume(id)).rejects.toThrow('SQLITE_FULL');
    expect([calls(), status()]).toEqual([0, 'queued']);
    full.free();
    expect(service.rig.engine.listAttempts(id)).toEqual([]);
    expect(await service.consume(id)).toEqual(ACK);
    expect([calls(), status()]).toEqual([1, 'submitted']);
    expect(await service.consume(id)).toEqual(ACK);
    expect(calls()).toBe(1);
  });

  test('cannot write an outcome: uncertain after the claim has gone stale, and one call for good (P5)', async () => {
    const { rig } = service;
    const send = service.transports.cloudflare.send.bind(service.transports.cloudflare);
    let full: ReturnType<typeof fill> | undefined;
    service.transports.cloudflare.send = async (...args) => {
      full = fill();
      return send(...args);
    };
    await expect(service.consume(id)).rejects.toThrow('SQLITE_FULL');
    // Brought again while the claim stands, it finds that somebody else has it.
    expect(await service.consume(id)).toEqual(ACK);
    expect([calls(), status()]).toEqual([1, 'queued']);
    full?.free();
    await rig.advance(6 * MINUTE);
    expect(rig.message(id)).toMatchObject({ status: 'uncertain' });
    expect(rig.statuses(id)).toEqual({ [JO]: 'uncertain', [KIM]: 'uncertain' });
    expect(rig.eventTypes).toEqual(['message.uncertain']);
    expect(rig.quotaBooks).toMatchObject({ held: 0, holds: 0 });
    for (let n = 0; n < 3; n++) expect(await service.consume(id)).toEqual(ACK);
    await rig.advance(DAY);
    expect(service.takeSends()).toEqual([]);
    expect(calls()).toBe(1);
  });

  test('has its alarm fail, and does what was due when there is room (P5)', async () => {
    const { rig } = service;
    service.records.failNext(2);
    await expect(service.consume(id)).rejects.toThrow();
    const full = fill();
    rig.clock.now += 6 * MINUTE;
    // The platform calls a handler that throws a few more times, and then forgets the alarm.
    for (let n = 0; n < 7; n++) await rig.engine.alarm().catch(() => undefined);
    rig.storage.alarmAt = null;
    expect(full.writes()).toBeGreaterThan(0);
    expect(status()).toBe('queued');
    full.free();
    // The cron that looks after mailboxes with work enters it, which is enough to put the alarm back.
    expect(rig.registry.has(rig.owner.identity_id)).toBe(true);
    expect(await rig.engine.poke()).toEqual({ work: true });
    await rig.advance(MINUTE);
    expect(status()).toBe('uncertain');
    expect(await service.consume(id)).toEqual(ACK);
    expect(calls()).toBe(1);
  });
});
