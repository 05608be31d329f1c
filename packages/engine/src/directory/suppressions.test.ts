import { EVENT_API_VERSION, type EventEnvelope } from '@pmail/core/events/types.ts';
import { rfc3339 } from '@pmail/core/time.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Db } from '../sql.ts';
import { statement } from '../sql.ts';
import { auditEntry, directory, NOW, newId, rows, tenantRow } from './directory.fixture.ts';
import {
  addSuppression,
  findSuppression,
  listSuppressions,
  removeSuppression,
  type SuppressionInsert,
  suppress,
} from './suppressions.ts';
import { insertTenant } from './tenants.ts';

/** The suppression list where its writers meet: reports about messages, and the API. */

const TENANT = tenantRow('acme');
const MESSAGE = newId('msg', NOW);

let db: Db;

beforeEach(async () => {
  db = await directory();
  await insertTenant(db, TENANT, auditEntry('tenant.create', TENANT.id));
});

const insert = (changes: Partial<SuppressionInsert> = {}): SuppressionInsert => ({
  tenant_id: TENANT.id,
  address_hash: 'hash',
  address_hint: 'j***@example.net',
  reason: 'manual',
  source_message_id: null,
  note: null,
  created_at: NOW,
  ...changes,
});

const byReport = (at = NOW, message = MESSAGE) =>
  suppress(db, insert({ reason: 'hard_bounce', source_message_id: message, created_at: at }));

async function byHand(at = NOW) {
  const event: EventEnvelope = {
    id: newId('evt', at),
    type: 'suppression.created',
    api_version: EVENT_API_VERSION,
    occurred_at: rfc3339(at),
    tenant_id: TENANT.id,
    identity_id: null,
    sequence: null,
    data: {},
  };
  return addSuppression(db, insert({ created_at: at }), event, auditEntry('suppression.create', TENANT.id, at));
}

const told = () => rows(db, 'SELECT id FROM event_index');
const logged = () => rows(db, "SELECT action FROM audit_log WHERE action LIKE 'suppression.%' ORDER BY id");
const find = (now = NOW) => findSuppression(db, TENANT.id, 'hash', now);

describe('of two writers the first stands', () => {
  test('a report after a word by hand owns nothing, so its message tells of nothing', async () => {
    expect(await byHand()).toMatchObject({ created: true, row: { reason: 'manual' } });
    expect(await byReport()).toMatchObject({ reason: 'manual', source_message_id: null });
  });

  test('a word by hand after a report changes, tells and logs nothing', async () => {
    expect(await byReport()).toMatchObject({ reason: 'hard_bounce', source_message_id: MESSAGE });
    expect(await byHand()).toMatchObject({
      created: false,
      row: { reason: 'hard_bounce', source_message_id: MESSAGE },
    });
    expect([await told(), await logged()]).toEqual([[], []]);
  });

  test('a report again is the same one', async () => {
    await byReport();
    expect(await byReport(NOW + 5)).toMatchObject({ source_message_id: MESSAGE, created_at: NOW });
    expect(await byReport(NOW + 5, newId('msg', NOW))).toMatchObject({ source_message_id: MESSAGE });
  });
});

describe('an entry that ends by itself', () => {
  beforeEach(async () => {
    await byReport();
    await db.batch([statement('UPDATE suppressions SET expires_at = ?', NOW + 10)]);
  });

  test.each([
    [NOW + 9, true],
    [NOW + 10, false],
  ])('counts until its moment (%i)', async (now, stands) => {
    expect((await find(now)) !== undefined).toBe(stands);
    expect(await listSuppressions(db, TENANT.id, {}, now, 10, null)).toHaveLength(stands ? 1 : 0);
  });

  test.each([NOW + 9, NOW + 10])('gives way to a word, which has no end (%i)', async (now) => {
    expect(await byHand(now)).toMatchObject({ created: true, row: { reason: 'manual', expires_at: null } });
    expect([(await told()).length, (await logged()).length]).toEqual([1, 1]);
    expect((await byHand(now)).created).toBe(false);
    expect([(await told()).length, (await logged()).length]).toEqual([1, 1]);
  });

  test('gives way to a complaint before it has run out, and then stays', async () => {
    const other = newId('msg', NOW);
    const complaint = insert({ reason: 'complaint', source_message_id: other, created_at: NOW + 5 });
    const stands = { reason: 'complaint', source_message_id: other, created_at: NOW + 5 };
    expect(await suppress(db, complaint)).toMatchObject(stands);
    expect(await suppress(db, insert({ reason: 'provider', created_at: NOW + 6, expires_at: NOW + 99 }))).toMatchObject(
      stands,
    );
    expect(await find(NOW + 200)).toMatchObject({ ...stands, expires_at: null });
  });

  test('stays where another that ends by itself comes', async () => {
    const again = insert({ reason: 'provider', created_at: NOW + 5, expires_at: NOW + 99 });
    expect(await suppress(db, again)).toMatchObject({ reason: 'hard_bounce', created_at: NOW });
    expect(await find(NOW + 10)).toBeUndefined();
  });

  test('is written over by a report as by a word', async () => {
    const other = newId('msg', NOW);
    expect(await byReport(NOW + 10, other)).toMatchObject({ source_message_id: other, created_at: NOW + 10 });
    expect(await find(NOW + 10)).toMatchObject({ expires_at: null });
  });
});

describe('a removal', () => {
  const remove = async (seen: Awaited<ReturnType<typeof find>>, now = NOW) => {
    if (seen === undefined) throw new Error('not there');
    return removeSuppression(db, seen, now, auditEntry('suppression.delete', TENANT.id));
  };

  test('takes the row, once, and is logged once', async () => {
    await byHand();
    const seen = await find();
    expect([await remove(seen), await remove(seen)]).toEqual([true, false]);
    expect((await logged()).map(({ action }) => action)).toEqual(['suppression.create', 'suppression.delete']);
    expect(await find()).toBeUndefined();
  });

  test('leaves a complaint that came in place of what was seen', async () => {
    await byHand();
    const seen = await find();
    await remove(seen);
    await suppress(db, insert({ reason: 'complaint', source_message_id: MESSAGE }));
    expect(await remove(seen)).toBe(false);
    expect(await find()).toMatchObject({ reason: 'complaint' });
  });

  test('of what has run out meanwhile is none', async () => {
    await byHand();
    const seen = await find();
    await db.batch([statement('UPDATE suppressions SET expires_at = ?', NOW)]);
    expect(await remove(seen)).toBe(false);
  });
});

test('lists are of one tenant, by reason and hash, in pages', async () => {
  const other = tenantRow('other');
  await insertTenant(db, other, auditEntry('tenant.create', other.id));
  for (const [n, reason] of (['manual', 'complaint', 'manual', 'provider'] as const).entries()) {
    await suppress(db, insert({ address_hash: `h${n}`, reason, created_at: NOW + (n > 1 ? 1 : 0) }));
    await suppress(db, insert({ tenant_id: other.id, address_hash: `h${n}`, reason }));
  }
  const list = async (
    filter: Parameters<typeof listSuppressions>[2],
    limit = 10,
    after: { at: number; id: string } | null = null,
  ) => (await listSuppressions(db, TENANT.id, filter, NOW, limit, after)).map(({ address_hash: hash }) => hash);
  expect(await list({})).toEqual(['h3', 'h2', 'h1', 'h0']);
  expect(await list({ reason: 'manual' })).toEqual(['h2', 'h0']);
  expect(await list({ address_hash: 'h1' })).toEqual(['h1']);
  expect(await list({ address_hash: 'h1', reason: 'manual' })).toEqual([]);
  expect(await list({}, 2)).toEqual(['h3', 'h2']);
  expect(await list({}, 2, { at: NOW + 1, id: 'h2' })).toEqual(['h1', 'h0']);
});
