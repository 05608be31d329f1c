import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCron } from '../src/crons/index.ts';
import { rollUpUsage } from '../src/crons/usage.ts';
import { TenantQuota } from '../src/index.ts';
import { deploy, sql, tenant } from './support.ts';

/** The crons themselves: that nothing keeps a step, or a tenant, from its turn. What each step does is tested with it. */

let said: { mock: { calls: unknown[][] } };

beforeEach(() => {
  said = vi.spyOn(console, 'error').mockReturnValue();
  vi.spyOn(console, 'warn').mockReturnValue();
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** A query that each step makes and no other, in the order of the steps. */
const STEPS: Record<string, Record<string, RegExp>> = {
  '* * * * *': {
    objects: /FROM tenants WHERE quota_do_id = ''/,
    pokes: /UPDATE mailbox_work SET poked_at/,
    webhooks: /FROM event_index\s+WHERE fanned_out_at IS NULL|webhook_work/,
  },
  '*/15 * * * *': {
    requests: /FROM idempotency_records WHERE expires_at/,
    signing_keys: /DELETE FROM signing_keys/,
    deliveries: /DELETE FROM webhook_deliveries/,
    usage: /SELECT id, quota_do_id, billing_mode/,
    events: /DELETE FROM event_index/,
  },
};

/** The steps whose queries are made while the cron runs and those of the `broken` steps fail. */
async function stepsOf(cron: string, broken: string[]): Promise<{ seen: string[]; error: unknown }> {
  const queries = Object.entries(STEPS[cron] ?? {});
  const seen = new Set<string>();
  const prepare = env.DB.prepare.bind(env.DB);
  const spy = vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
    for (const [step, pattern] of queries) {
      if (!pattern.test(query)) continue;
      seen.add(step);
      if (broken.includes(step)) throw new Error('D1_ERROR: Network connection lost.');
    }
    return prepare(query);
  });
  const error = await runCron(cron, env).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  spy.mockRestore();
  return { seen: [...seen], error };
}

describe.each(Object.entries(STEPS))('the cron %s', (cron, queries) => {
  const names = Object.keys(queries);

  beforeEach(async () => {
    await tenant(await deploy(), 'acme');
  });

  test('runs every step, and is content', async () => {
    expect(await stepsOf(cron, [])).toEqual({ seen: names, error: null });
  });

  test.each(names)('runs every step although %s fails, and then says that it did', async (step) => {
    const { seen, error } = await stepsOf(cron, [step]);
    expect(seen).toEqual(names);
    expect(error).toEqual(new Error(`steps of the cron failed: ${step}`));
    expect(said.mock.calls.flat().join()).toContain(`"event":"cron_step_failed","cron":"${cron}","step":"${step}"`);
  });

  test('names every step that failed', async () => {
    const { seen, error } = await stepsOf(cron, names);
    expect(seen).toEqual(names);
    expect(error).toEqual(new Error(`steps of the cron failed: ${names.join(', ')}`));
  });
});

test('an object that cannot be made does not keep the next from being made', async () => {
  const root = await deploy();
  for (const slug of ['one', 'two', 'three']) await tenant(root, slug);
  await sql("UPDATE tenants SET quota_do_id = ''");
  const init = Reflect.get<TenantQuota, 'init'>(TenantQuota.prototype, 'init');
  let calls = 0;
  vi.spyOn(TenantQuota.prototype, 'init').mockImplementation(function (this: TenantQuota, ...args) {
    if (++calls === 1) throw new Error('away');
    return init.apply(this, args);
  });
  const left = () => sql("SELECT id FROM tenants WHERE quota_do_id = ''");
  await expect(runCron('* * * * *', env)).rejects.toThrow('objects');
  expect(await left()).toHaveLength(1);
  await runCron('* * * * *', env);
  expect(await left()).toEqual([]);
});

describe('the roll-up of usage', () => {
  const QUARTER = 15 * 60_000;
  let made: string[];

  beforeEach(async () => {
    const root = await deploy();
    made = [];
    for (const slug of ['t-a', 't-b', 't-c', 't-d', 't-e']) made.push((await tenant(root, slug)).id);
    made.sort();
  });

  /** Whose usage the runs ask for that begin at these times, at most two tenants each. */
  async function asked(times: number[]): Promise<string[][]> {
    const runs: string[][] = [];
    const days = vi.spyOn(TenantQuota.prototype, 'usageDays');
    for (const at of times) {
      days.mockClear();
      await rollUpUsage(env, at, 2);
      runs.push(days.mock.calls.map(([call]) => call.tenant_id));
    }
    return runs;
  }

  test('takes a bounded number each time, and everybody comes round', async () => {
    const start = Math.floor(Date.now() / (3 * QUARTER)) * 3 * QUARTER;
    const runs = await asked([0, 1, 2, 3, 4].map((n) => start + n * QUARTER));
    const turns = [made.slice(0, 2), made.slice(2, 4), made.slice(4)];
    expect(runs).toEqual([...turns, ...turns.slice(0, 2)]);
  });

  test('is the same run a little before its time and a little after', async () => {
    const start = Math.floor(Date.now() / QUARTER) * QUARTER;
    const [early, sharp, late] = await asked([start - 2_000, start, start + 60_000]);
    expect(sharp).not.toEqual([]);
    expect([early, late]).toEqual([sharp, sharp]);
  });

  test('goes on with the next tenant when one cannot be asked', async () => {
    const days = vi.spyOn(TenantQuota.prototype, 'usageDays').mockImplementationOnce(() => {
      throw new Error('away');
    });
    await rollUpUsage(env, Date.now());
    expect(days.mock.calls.map(([call]) => call.tenant_id)).toEqual(made);
  });
});
