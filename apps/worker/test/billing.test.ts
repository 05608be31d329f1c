import { env } from 'cloudflare:workers';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { TenantQuota } from '../src/index.ts';
import { accepted, atRest, keyed, type Lab, letter, makeLab, quotaRemote, until, waiting } from './mail.ts';
import { keepStorage } from './storage.ts';
import {
  allOf,
  audited,
  call,
  deploy,
  makeKey,
  paths,
  plantKey,
  platformKey,
  refusal,
  send,
  sql,
  tenant,
} from './support.ts';

/** What a tenant is granted: set by the operator, counted by the quota, refused when it is used up. */

keepStorage();

let root: string;
let lab: Lab;
let labs = 0;

beforeAll(async () => {
  root = await deploy();
});

beforeEach(async () => {
  lab = await makeLab(root, `lab${++labs}`);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const params = () => ({ tenant_id: lab.tenant });
const get = () => call(root, 'tenants.billing.get', { params: params() });
const set = (body: object) => call(root, 'tenants.billing.update', { params: params(), body });
const refused = (body: object) => refusal(root, 'tenants.billing.update', { params: params(), body });

async function usageOf(feature: string, key = lab.key) {
  const { billing, features } = await call(key, 'usage.get');
  return { billing, ...features.find((entry) => entry.feature === feature) };
}

const NOTHING = { inboxes: null, sends: null, custom_domains: null, storage_gb: null };

const nextMonth = (): string => {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString();
};

/** A letter to this many people, the first ones of whom are called so. */
const to = (...names: string[]) => letter({ to: names.map((name) => `${name}@simulator.invalid`) });

const attempt = (body: object, key: string) =>
  send(lab.key, 'messages.send', { params: { identity_id: lab.ann }, body, headers: keyed(key) });

describe('without anything set', () => {
  test('nothing is limited, and what is sent is counted', async () => {
    expect(await get()).toEqual({ mode: 'disabled', granted: NOTHING });
    await waiting(lab.key, lab.ann, to('a', 'b', 'c'));
    expect(await usageOf('sends')).toEqual({
      billing: 'disabled',
      feature: 'sends',
      granted: null,
      used: 0,
      held: 3,
      remaining: null,
      unlimited: true,
      resets_at: nextMonth(),
    });
  });
});

describe('an allowance of two sends', () => {
  test('lets two recipients pass and refuses the third; raised, the same key goes through', async () => {
    expect(await set({ mode: 'metered', granted: { sends: 2 } })).toEqual({
      mode: 'metered',
      granted: { ...NOTHING, sends: 2 },
    });
    expect(await get()).toEqual({ mode: 'metered', granted: { ...NOTHING, sends: 2 } });
    for (const name of ['a', 'b']) await accepted(lab.key, lab.ann, to(name));
    await until(async () => expect(await usageOf('sends')).toMatchObject({ used: 2, held: 0 }));
    const third = to('c');
    const input = { params: { identity_id: lab.ann }, body: third, headers: keyed('third') };
    for (let again = 0; again < 2; again++) {
      expect(await refusal(lab.key, 'messages.send', input)).toEqual({
        code: 'billing_limit',
        feature: 'sends',
        granted: 2,
        used: 2,
        resets_at: nextMonth(),
        upgrade_url: null,
      });
    }
    expect(await usageOf('sends')).toMatchObject({ granted: 2, used: 2, held: 0, remaining: 0, unlimited: false });
    await set({ granted: { sends: 3 } });
    const sent = await accepted(lab.key, lab.ann, third, 'third');
    expect(sent.deduplicated).toBe(false);
    expect(await accepted(lab.key, lab.ann, third, 'third')).toEqual({ ...sent, deduplicated: true });
    await until(async () =>
      expect(await usageOf('sends')).toMatchObject({ granted: 3, used: 3, held: 0, remaining: 0 }),
    );
  });

  test('counts recipients, also those that are only on their way', async () => {
    await set({ mode: 'metered', granted: { sends: 3 } });
    await waiting(lab.key, lab.ann, to('a', 'b'));
    expect(await usageOf('sends')).toMatchObject({ used: 0, held: 2, remaining: 1 });
    expect((await attempt(to('c', 'd'), 'k')).status).toBe(402);
    expect(await usageOf('sends')).toMatchObject({ used: 0, held: 2, remaining: 1 });
    await waiting(lab.key, lab.ann, to('c'));
    expect(await usageOf('sends')).toMatchObject({ used: 0, held: 3, remaining: 0 });
  });

  test('is told once in a period when it is used up', async () => {
    await set({ mode: 'metered', granted: { sends: 0 } });
    for (const key of ['a', 'b']) expect((await attempt(to('x'), key)).status).toBe(402);
    await atRest(lab.ann);
    const query = { type: 'billing.limit_reached', include: 'data' };
    const { data } = await call(lab.key, 'events.list', { query });
    expect(data).toMatchObject([{ data: { feature: 'sends', granted: 0, resets_at: nextMonth() } }]);
  });

  test('does not hold back an answer that was given before', async () => {
    const first = await accepted(lab.key, lab.ann, to('a'), 'k');
    await set({ mode: 'metered', granted: { sends: 0 } });
    expect(await accepted(lab.key, lab.ann, to('a'), 'k')).toEqual({ ...first, deduplicated: true });
  });

  test('begins anew with the month', async () => {
    await set({ mode: 'metered', granted: { sends: 1 } });
    await accepted(lab.key, lab.ann, to('a'));
    await until(async () => expect(await usageOf('sends')).toMatchObject({ used: 1, held: 0 }));
    expect((await attempt(to('b'), 'k')).status).toBe(402);
    vi.setSystemTime(Date.parse(nextMonth()));
    expect((await attempt(to('b'), 'k')).status).toBe(202);
  });
});

describe('modes', () => {
  test.each(['exempt', 'disabled'])(
    '%s counts and refuses nothing, and keeps the allowances for later',
    async (mode) => {
      await set({ mode: 'metered', granted: { sends: 1, inboxes: 7 } });
      expect((await attempt(to('a', 'b'), 'k')).status).toBe(402);
      expect(await set({ mode })).toEqual({ mode, granted: { ...NOTHING, sends: 1, inboxes: 7 } });
      expect((await attempt(to('a', 'b'), 'k')).status).toBe(202);
      expect(await usageOf('sends')).toMatchObject({ billing: mode, granted: null, remaining: null, unlimited: true });
      await until(async () => expect(await usageOf('sends')).toMatchObject({ used: 2 }));
      await set({ mode: 'metered' });
      expect(await usageOf('sends')).toMatchObject({ billing: 'metered', granted: 1, used: 2, remaining: 0 });
      expect(await usageOf('inboxes')).toMatchObject({ granted: 7, unlimited: false });
    },
  );

  test('null has no bound, and zero lets nothing pass', async () => {
    await set({ mode: 'metered', granted: { sends: 0, storage_gb: 5 } });
    expect((await attempt(to('a'), 'k')).status).toBe(402);
    expect(await set({ granted: { sends: null } })).toEqual({
      mode: 'metered',
      granted: { ...NOTHING, storage_gb: 5 },
    });
    expect((await attempt(to('a'), 'k')).status).toBe(202);
    expect(await usageOf('sends')).toMatchObject({ billing: 'metered', granted: null, unlimited: true });
  });

  test('can be given to a new tenant', async () => {
    const { id } = await tenant(root, `metered${labs}`, { billing: { mode: 'metered' } });
    expect(await call(root, 'tenants.billing.get', { params: { tenant_id: id } })).toEqual({
      mode: 'metered',
      granted: NOTHING,
    });
    const { billing } = await call(root, 'usage.get', { query: { tenant_id: id } });
    expect(billing).toBe('metered');
  });
});

describe('a change', () => {
  test('is in the log with what it set, and one that changes nothing is not', async () => {
    await set({ mode: 'metered', granted: { sends: 10 } });
    await set({ mode: 'metered', granted: { sends: 10, inboxes: null } });
    await set({});
    await set({ granted: { sends: null } });
    expect((await audited(lab.tenant)).filter((action) => action === 'tenant.billing_update')).toHaveLength(2);
    const rows = await sql(
      "SELECT * FROM audit_log WHERE action = 'tenant.billing_update' AND target_id = ? ORDER BY created_at, id",
      lab.tenant,
    );
    expect(rows.map(({ details_json: details }) => JSON.parse(String(details)) as object)).toEqual([
      { mode: 'metered', granted: { sends: 10 } },
      { mode: 'metered', granted: {} },
    ]);
    expect(rows[0]).toMatchObject({ tenant_id: lab.tenant, actor_key_id: (await call(root, 'me.get')).key_id });
  });

  test('leaves the rest of the tenant alone, and the rest leaves it', async () => {
    const before = await call(root, 'tenants.get', { params: params() });
    await set({ mode: 'metered', granted: { sends: 4 } });
    const after = await call(root, 'tenants.get', { params: params() });
    expect({ ...after, updated_at: before.updated_at }).toEqual(before);
    await call(root, 'tenants.update', { params: params(), body: { name: 'Renamed', policy: { max_recipients: 3 } } });
    expect(await get()).toEqual({ mode: 'metered', granted: { ...NOTHING, sends: 4 } });
    expect(await usageOf('sends')).toMatchObject({ granted: 4 });
  });

  test('that did not reach the quota stands, and reaches it when it is repeated', async () => {
    const lost = vi.spyOn(TenantQuota.prototype, 'takeBilling').mockImplementation(() => {
      throw new Error('away');
    });
    const body = { mode: 'metered', granted: { sends: 1 } };
    expect(await refused(body)).toEqual({ code: 'unavailable', step: 'quota' });
    lost.mockRestore();
    expect(await get()).toEqual({ mode: 'metered', granted: { ...NOTHING, sends: 1 } });
    expect(await usageOf('sends')).toMatchObject({ billing: 'disabled', granted: null });
    await set(body);
    expect(await usageOf('sends')).toMatchObject({ billing: 'metered', granted: 1 });
    expect((await audited(lab.tenant)).filter((action) => action === 'tenant.billing_update')).toHaveLength(1);
  });

  test('that did not reach the quota and is not repeated comes with the roll-up of usage', async () => {
    const lost = vi.spyOn(TenantQuota.prototype, 'takeBilling').mockImplementation(() => {
      throw new Error('away');
    });
    await refused({ mode: 'metered', granted: { sends: 1 } });
    lost.mockRestore();
    await runCron('*/15 * * * *', env);
    expect(await usageOf('sends')).toMatchObject({ billing: 'metered', granted: 1 });
  });

  test('that arrives late does not undo a later one', async () => {
    await set({ mode: 'metered', granted: { sends: 1 } });
    const [row] = await sql('SELECT updated_at FROM tenants WHERE id = ?', lab.tenant);
    await set({ granted: { sends: 2 } });
    const { stub, call: context } = await quotaRemote(lab.tenant);
    await stub.takeBilling(context, { mode: 'metered', granted: { sends: 1 }, as_of: Number(row?.['updated_at']) });
    expect(await usageOf('sends')).toMatchObject({ granted: 2 });
  });

  test('of many at once leaves directory and quota with the same', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        send(root, 'tenants.billing.update', { params: params(), body: { mode: 'metered', granted: { sends: n } } }),
      ),
    );
    for (const { status } of answers) expect([200, 503]).toContain(status);
    const { granted } = await get();
    expect(await usageOf('sends')).toMatchObject({ billing: 'metered', granted: granted.sends });
  });
});

describe('who may', () => {
  const routes = ['tenants.billing.get', 'tenants.billing.update'] as const;
  const input = () => ({ params: params(), body: undefined });
  const inputOf = (route: (typeof routes)[number]) =>
    route === 'tenants.billing.update' ? { ...input(), body: { mode: 'exempt' } } : input();

  test.each(routes)('%s only platform keys with tenants:manage', async (route) => {
    for (const level of ['tenant', 'identity'] as const) {
      const owner = { tenant_id: lab.tenant, ...(level === 'identity' ? { identity_id: lab.ann } : {}) };
      const own = await makeKey(root, { level, ...owner, permissions: allOf(level) });
      expect(await refusal(own, route, inputOf(route))).toEqual({
        code: 'permission_denied',
        required: 'tenants:manage',
      });
      expect(await refusal(await plantKey({ level, ...owner }), route, inputOf(route))).toEqual({
        code: 'scope_denied',
      });
    }
    const weak = await platformKey(['platform:ops']);
    expect(await refusal(weak, route, inputOf(route))).toEqual({
      code: 'permission_denied',
      required: 'tenants:manage',
    });
    expect(await get()).toMatchObject({ mode: 'disabled' });
  });

  test.each(routes)('%s of no tenant', async (route) => {
    for (const tenant_id of ['ten_01JABCDEFGHJKMNPQRSTVWXYZ0', 'nonsense', lab.ann]) {
      expect(await refusal(root, route, { ...inputOf(route), params: { tenant_id } })).toEqual({
        code: 'tenant_not_found',
      });
    }
  });

  test('a tenant on its way out is read and no longer changed: tenant_erased', async () => {
    for (const status of ['erasing', 'erased']) {
      await sql('UPDATE tenants SET status = ? WHERE id = ?', status, lab.tenant);
      expect(await refused({ mode: 'exempt' })).toEqual({ code: 'tenant_erased' });
      expect(await get()).toMatchObject({ mode: 'disabled' });
    }
  });

  test('a tenant whose quota is not made yet has to wait', async () => {
    await sql("UPDATE tenants SET quota_do_id = '' WHERE id = ?", lab.tenant);
    expect(await refused({ mode: 'exempt' })).toEqual({ code: 'unavailable', step: 'quota' });
    expect(await get()).toMatchObject({ mode: 'disabled' });
  });
});

test.each([
  [{ mode: 'free' }, ['mode']],
  [{ mode: null }, ['mode']],
  [{ granted: null }, ['granted']],
  [{ granted: [] }, ['granted']],
  [{ granted: { sends: -1 } }, ['granted.sends']],
  [{ granted: { sends: 1.5, inboxes: '3' } }, ['granted.inboxes', 'granted.sends']],
  [{ granted: { sends: 2 ** 53 } }, ['granted.sends']],
  [{ granted: { emails: 1 } }, ['granted.emails']],
  [{ mode: 'metered', sends: 1 }, ['sends']],
])('invalid_request for %j', async (body, fields) => {
  const answer = await refused(body);
  expect(answer.code).toBe('invalid_request');
  expect(paths(answer).sort()).toEqual(fields);
  expect(await get()).toEqual({ mode: 'disabled', granted: NOTHING });
});
