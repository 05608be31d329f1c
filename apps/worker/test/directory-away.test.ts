import { env } from 'cloudflare:workers';
import { LIMITS } from '@pmail/core/limits.ts';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { FaultLab, outboundOf } from './faults.ts';
import { accepted, atRest, letter, stored, watchQueues } from './mail.ts';
import { keepStorage } from './storage.ts';
import { refusal } from './support.ts';

/** The directory fails or says nothing while somebody asks for a send. */

keepStorage();

let own: FaultLab;

beforeAll(async () => {
  own = await FaultLab.make();
});

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue();
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Waits of the directory's deadline are over at once; all others take their time. */
function hurryDirectory(): () => number {
  const timeout = globalThis.setTimeout;
  let hurried = 0;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation((handler: () => void, ms?: number) => {
    const soon = ms === LIMITS.directory_deadline_ms;
    if (soon) hurried++;
    return timeout(handler, soon ? 0 : ms);
  });
  return () => hurried;
}

/** Refuses one send under the key, and looks at everything that is stored before and after it. */
async function expectNothingTried(from: string, answer: object, broken: () => unknown): Promise<void> {
  await atRest(from);
  const before = await stored();
  const queues = watchQueues();
  const spy = vi.spyOn(env.DB, 'batch').mockImplementation(broken as never);
  const input = { params: { identity_id: from }, body: letter(), headers: { 'idempotency-key': 'k' } };
  expect(await refusal(own.lab.key, 'messages.send', input)).toMatchObject({ code: 'unavailable', ...answer });
  expect(spy).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
  expect(queues.outbound).not.toHaveBeenCalled();
  // Rows, objects, counts and holds of the whole deployment.
  expect(await stored()).toEqual(before);
  expect((await accepted(own.lab.key, from, letter(), 'k')).deduplicated).toBe(false);
  expect(await outboundOf(from)).toHaveLength(1);
}

test('a directory that takes longer than 5 s: a send is refused, nothing was tried, and the repeat is the first (S13, P6)', async () => {
  expect(LIMITS.directory_deadline_ms).toBe(5_000);
  const from = await own.somebody();
  const hurried = hurryDirectory();
  await expectNothingTried(from, { step: 'directory' }, () => new Promise(() => undefined));
  expect(hurried()).toBeGreaterThan(0);
});

test.each(['D1_ERROR: D1 DB is overloaded. Requests queued for too long.', 'D1_ERROR: Network connection lost.'])(
  'a directory that fails (%s): a send is refused, nothing was tried, and the repeat is the first (S13, P6)',
  async (message) => {
    const from = await own.somebody();
    await expectNothingTried(from, { step: 'directory' }, () => Promise.reject(new Error(message)));
  },
);
