import { beforeEach, describe, expect, test } from 'vitest';
import type { Db } from '../sql.ts';
import { statement } from '../sql.ts';
import { auditEntry, directory, NOW, newId, rows, tenantRow } from './directory.fixture.ts';
import { deleteOldEvents, type EventKeeper, pageOfKeepers } from './event-retention.ts';
import { lastSequence } from './events.ts';
import { insertTenant, type TenantRow } from './tenants.ts';

/** How long events can be read (retention.events_days). */

const DAY = 86_400_000;
const [ann, bob] = [newId('idn', NOW), newId('idn', NOW)];

let db: Db;
const addTenant = (row: TenantRow) => insertTenant(db, row, auditEntry('tenant.create', row.id));
const tenant = tenantRow('acme');

beforeEach(async () => {
  db = await directory();
  await addTenant(tenant);
});

interface Told {
  age: number;
  sequence?: number | null;
  owner?: string;
  tenant_id?: string | null;
  waits?: boolean;
}

async function add(name: string, { age, sequence = null, owner = ann, tenant_id = tenant.id, waits }: Told) {
  await db.batch([
    statement(
      `INSERT INTO event_index (id, tenant_id, identity_id, type, sequence, owner_kind, owner_id, occurred_at, fanned_out_at)
       VALUES (?, ?, ?, 'message.sent', ?, ?, ?, ?, ?)`,
      name,
      tenant_id,
      tenant_id === null ? null : owner,
      sequence,
      sequence === null ? 'platform' : 'mailbox',
      owner,
      NOW - age,
      waits === true ? null : NOW - age,
    ),
  ]);
}

const left = async () => (await rows(db, 'SELECT id FROM event_index ORDER BY id')).map(({ id }) => id);
const keeps = (days: number): EventKeeper[] => [{ tenant_id: tenant.id, days }];

describe('events of a tenant', () => {
  test('go when they are older than it keeps them, and those of others stay', async () => {
    await add('a', { age: 31 * DAY });
    await add('b', { age: 30 * DAY });
    await add('c', { age: 31 * DAY, tenant_id: 'ten_other' });
    await add('d', { age: 31 * DAY, tenant_id: null });
    expect(await deleteOldEvents(db, keeps(30), NOW, 10)).toEqual([]);
    expect(await left()).toEqual(['b', 'c', 'd']);
    await deleteOldEvents(db, [{ tenant_id: null, days: 30 }], NOW, 10);
    expect(await left()).toEqual(['b', 'c']);
  });

  test('stay a week longer where their subscribers were never found', async () => {
    await add('a', { age: 37 * DAY + 1, waits: true });
    await add('b', { age: 37 * DAY, waits: true });
    await add('c', { age: 31 * DAY, waits: true });
    await deleteOldEvents(db, keeps(30), NOW, 10);
    expect(await left()).toEqual(['b', 'c']);
  });

  test('keep the last number of each mailbox, which a restored one is found out by (P7)', async () => {
    await add('a1', { age: 90 * DAY, sequence: 1 });
    await add('a2', { age: 80 * DAY, sequence: 2 });
    await add('b7', { age: 90 * DAY, sequence: 7, owner: bob });
    await deleteOldEvents(db, keeps(1), NOW, 10);
    expect(await left()).toEqual(['a2', 'b7']);
    expect(await lastSequence(db, ann)).toBe(2);
    await add('a3', { age: 0, sequence: 3 });
    await deleteOldEvents(db, keeps(1), NOW, 10);
    expect(await left()).toEqual(['a3', 'b7']);
  });

  test('go a few at a time, and whoever has more is told', async () => {
    for (let n = 0; n < 5; n++) await add(`e${n}`, { age: (100 - n) * DAY });
    expect(await deleteOldEvents(db, keeps(1), NOW, 2)).toEqual(keeps(1));
    expect(await left()).toEqual(['e2', 'e3', 'e4']);
    expect(await deleteOldEvents(db, keeps(1), NOW, 2)).toEqual(keeps(1));
    expect(await deleteOldEvents(db, keeps(1), NOW, 2)).toEqual([]);
    expect(await left()).toEqual([]);
  });
});

describe('who keeps events', () => {
  test('the platform first, then tenants by pages, each as its policy says', async () => {
    await db.batch([statement('DELETE FROM tenants')]);
    const some = ['a', 'b', 'c'].map((slug) => tenantRow(slug)).sort((x, y) => (x.id < y.id ? -1 : 1));
    const [first, second, third] = some;
    if (first === undefined || second === undefined || third === undefined) throw new Error('three');
    second.policy_json = JSON.stringify({ retention: { events_days: 7 } });
    for (const row of some) await addTenant(row);
    const deployment = { retention: { events_days: 14 } };
    expect(await pageOfKeepers(db, null, 2, deployment)).toEqual([
      { tenant_id: null, days: 14 },
      { tenant_id: first.id, days: 14 },
      { tenant_id: second.id, days: 7 },
    ]);
    expect(await pageOfKeepers(db, second.id, 2, {})).toEqual([{ tenant_id: third.id, days: 30 }]);
    expect(await pageOfKeepers(db, third.id, 2, {})).toEqual([]);
  });
});
