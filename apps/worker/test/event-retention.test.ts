import { env } from 'cloudflare:workers';
import { beforeAll, expect, test } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { type Lab, makeLab } from './mail.ts';
import { keepStorage } from './storage.ts';
import { call, deploy, sql } from './support.ts';

/** The quarter-hourly clean-up of events, each tenant's as its policy says. */

keepStorage();

const DAY = 86_400_000;

let root: string;
let short: Lab;
let long: Lab;

beforeAll(async () => {
  root = await deploy();
  short = await makeLab(root);
  long = await makeLab(root, 'other');
  const patch = { body: { policy: { retention: { events_days: 2 } } } };
  await call(root, 'tenants.policy.update', { params: { tenant_id: short.tenant }, ...patch });
});

/** Events of a mailbox, some days old, numbered in order of age. */
async function plant(lab: Lab, ages: number[]): Promise<void> {
  await sql('DELETE FROM event_index WHERE tenant_id = ?', lab.tenant);
  for (const [index, age] of ages.entries()) {
    const at = Date.now() - age * DAY;
    const id = `evt_01JABCDEFGHJKMNPQRST${lab.tenant.slice(-4)}0${index}`;
    await sql(
      `INSERT INTO event_index (id, tenant_id, identity_id, type, sequence, owner_kind, owner_id, occurred_at, fanned_out_at)
       VALUES (?, ?, ?, 'identity.resumed', ?, 'mailbox', ?, ?, ?)`,
      id,
      lab.tenant,
      lab.ann,
      index + 1,
      lab.ann,
      at,
      at,
    );
  }
}

const ages = async (lab: Lab): Promise<number[]> => {
  const { data } = await call(lab.key, 'events.list', {});
  return data.map(({ occurred_at }) => Math.round((Date.now() - Date.parse(occurred_at)) / DAY));
};

test('takes what is older than the policy says, and the other tenant keeps its own', async () => {
  await plant(short, [40, 3, 1]);
  await plant(long, [40, 3, 1]);
  await runCron('*/15 * * * *', env);
  expect(await ages(short)).toEqual([1]);
  expect(await ages(long)).toEqual([1, 3]);
});

test('leaves more than one statement deletes to its next turns', async () => {
  await plant(long, [31]);
  await sql(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
     INSERT INTO event_index (id, tenant_id, type, owner_kind, owner_id, occurred_at, fanned_out_at)
     SELECT 'evt_' || i, ?, 'suppression.created', 'platform', 'x', 0, 0 FROM n`,
    long.tenant,
  );
  await runCron('*/15 * * * *', env);
  expect(await ages(long)).toEqual([31]);
});
