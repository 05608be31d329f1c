import { env } from 'cloudflare:workers';
import type { RouteId } from '@pmail/contracts/routes.ts';
import { expect, vi } from 'vitest';
import { accepted, letter, makeLab, post, quotaRemote, waiting } from '../mail.ts';
import { type Provocation, type Provoked, somebody, withPolicy } from './world.ts';

/** What refuses a send that the policy let pass: allowances, daily caps, and another send at the same time. */

const SEND: RouteId[] = ['messages.send'];

const soon = ({ details: given, headers }: Provoked): void => {
  const midnight = new Date(`${new Date().toISOString().slice(0, 10)}T00:00:00Z`).getTime() + 86_400_000;
  expect(Date.parse(String(given?.['resets_at']))).toBe(midnight);
  const wait = Number(headers.get('retry-after'));
  expect(wait).toBeGreaterThan((midnight - Date.now()) / 1_000 - 60);
  expect(wait).toBeLessThanOrEqual((midnight - Date.now()) / 1_000 + 60);
};

const allowances: Provocation[] = [
  {
    code: 'billing_limit',
    when: 'the allowance is used up',
    routes: SEND,
    provoke: async (world) => {
      const lab = await makeLab(world.root, 'poor');
      const { stub, call: context } = await quotaRemote(lab.tenant);
      await stub.takeBilling(context, { mode: 'metered', granted: { sends: 1 }, as_of: Number.MAX_SAFE_INTEGER });
      return post(lab.key, lab.ann, letter({ to: ['a@simulator.invalid', 'b@simulator.invalid'] }));
    },
    also: ({ details: given }) =>
      expect(given).toEqual({
        feature: 'sends',
        granted: 1,
        used: 0,
        resets_at: expect.stringMatching(/^\d{4}-\d\d-01T00:00:00.000Z$/) as string,
        upgrade_url: null,
      }),
  },
  {
    code: 'daily_cap_reached',
    when: 'the identity has none left',
    routes: SEND,
    provoke: async (world) => {
      const from = await somebody(world, { send_policy: { daily_cap: 1 } });
      await accepted(world.key, from);
      return post(world.key, from);
    },
    also: (answer) => {
      expect(answer.details).toMatchObject({ cap: 'identity' });
      soon(answer);
    },
  },
  {
    code: 'daily_cap_reached',
    when: 'the tenant has none left',
    routes: SEND,
    provoke: (world) => withPolicy(world.tenant, { tenant_daily_send_cap: 0 }, () => post(world.key, world.ann)),
    also: (answer) => {
      expect(answer.details).toMatchObject({ cap: 'tenant' });
      soon(answer);
    },
  },
];

/** Lets the wait for a thread pass at once, on the clock too. */
export async function withoutWaiting<T>(run: () => Promise<T>): Promise<T> {
  const spy = vi.spyOn(scheduler, 'wait').mockImplementation((ms) => {
    vi.setSystemTime(Date.now() + ms);
    return Promise.resolve();
  });
  try {
    return await run();
  } finally {
    spy.mockRestore();
    vi.useRealTimers();
  }
}

const sameTime: Provocation[] = [
  {
    code: 'thread_busy',
    when: 'another message of it has not left yet',
    routes: SEND,
    provoke: async (world) => {
      const from = await somebody(world);
      const { thread_id } = await waiting(world.key, from);
      await waiting(world.key, from, letter({ thread_id }));
      return withoutWaiting(() => post(world.key, from, letter({ thread_id })));
    },
    also: ({ details: given, headers }) => {
      expect(given).toEqual({ retry_after: 60 });
      expect(headers.get('retry-after')).toBe('60');
    },
  },
  {
    code: 'request_in_progress',
    when: 'the first with this key is still on its way',
    routes: SEND,
    provoke: async (world) => {
      const gate = Promise.withResolvers<void>();
      const put = env.BLOBS.put.bind(env.BLOBS);
      const slow = vi.spyOn(env.BLOBS, 'put').mockImplementationOnce((async (key: string, value: Uint8Array) => {
        await gate.promise;
        return put(key, value);
      }) as never);
      const first = post(world.key, world.ann, letter(), 'slow');
      await vi.waitFor(() => expect(slow).toHaveBeenCalled());
      const second = await post(world.key, world.ann, letter(), 'slow');
      gate.resolve();
      expect((await first).status).toBe(202);
      slow.mockRestore();
      return second;
    },
    also: ({ headers }) => expect(headers.get('retry-after')).toBe('1'),
  },
];

export const contentions: Provocation[] = [...allowances, ...sameTime];
