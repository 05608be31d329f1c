import { beforeEach, describe, expect, test } from 'vitest';
import type { WorkRegistry } from '../ports.ts';
import type { Db } from '../sql.ts';
import { directory, newId, rows } from './directory.fixture.ts';
import { takeForPoke, workRegistry } from './work.ts';

/** The registry of mailboxes with work (R11). */

let db: Db;
let registry: WorkRegistry;
const [a, b, c] = [newId('idn', 1), newId('idn', 1), newId('idn', 1)];

beforeEach(async () => {
  db = await directory();
  registry = workRegistry(db);
});

const entries = (): Promise<unknown[]> => rows(db, 'SELECT identity_id, since FROM mailbox_work ORDER BY identity_id');

describe('an entry', () => {
  test('is one for each mailbox, and says when it was made last', async () => {
    await registry.mark(a, 10);
    await registry.mark(a, 10);
    await registry.mark(a, 20);
    await registry.mark(b, 15);
    expect(await entries()).toEqual([
      { identity_id: a, since: 20 },
      { identity_id: b, since: 15 },
    ]);
  });

  test('is taken back by its own time only', async () => {
    await registry.mark(a, 10);
    await registry.mark(a, 20);
    await registry.clear(a, 10);
    expect(await entries()).toHaveLength(1);
    await registry.clear(a, 20);
    await registry.clear(a, 20);
    expect(await entries()).toEqual([]);
  });
});

describe('the cron', () => {
  test('takes the longest forgotten first, and each again only after its time', async () => {
    await registry.mark(a, 300);
    await registry.mark(b, 100);
    await registry.mark(c, 200);
    expect(await takeForPoke(db, 99, 1_000, 10)).toEqual([]);
    expect(new Set(await takeForPoke(db, 250, 1_000, 2))).toEqual(new Set([b, c]));
    expect(await takeForPoke(db, 900, 1_000, 10)).toEqual([a]);
    expect(await takeForPoke(db, 999, 1_000, 10)).toEqual([]);
    expect(await takeForPoke(db, 1_000, 2_000, 10)).toHaveLength(3);
  });

  test('finds a mailbox that was marked or poked by a clock that ran a year ahead (K1)', async () => {
    const year = 365 * 86_400_000;
    await registry.mark(a, year);
    await registry.mark(b, 100);
    expect(await takeForPoke(db, 99, 1_000, 10)).toEqual([a]);
    expect(await takeForPoke(db, 99, 1_000, 10)).toEqual([]);
  });

  test('is not put off by a mailbox that goes on marking itself', async () => {
    await registry.mark(a, 100);
    await registry.mark(a, 900);
    expect(await takeForPoke(db, 500, 1_000, 10)).toEqual([a]);
  });
});
