import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ProviderLog } from './provider-log.ts';

/** The provider's own log, as the service reaches it: over HTTP, on the loopback interface. */

let log: ProviderLog;

beforeEach(async () => {
  log = await ProviderLog.start();
});

afterEach(() => log.stop());

function take(message_id: string): Promise<Response> {
  return fetch(log.url, {
    method: 'POST',
    body: JSON.stringify({ message_id, recipients: ['jo@example.net'], bytes: 9 }),
  });
}

describe('the log of the provider', () => {
  test('writes down each message that it is told of, and answers', async () => {
    for (const id of ['m1', 'm2', 'm1']) expect((await take(id)).status).toBe(200);
    expect(log.taken.map(({ message_id }) => message_id)).toEqual(['m1', 'm2', 'm1']);
    expect(log.callsFor('m1')).toHaveLength(2);
    expect(log.callsFor('m3')).toEqual([]);
    expect(log.taken[0]).toMatchObject({ recipients: ['jo@example.net'], bytes: 9, at: expect.any(Number) as number });
  });

  test('keeps its answers back while it is held, and gives them all when it is let go', async () => {
    log.hold();
    const answers = [take('m1'), take('m2')];
    while (log.held < 2) await new Promise(setImmediate);
    // Both are taken: only the answers are missing, as for a call that is cut off.
    expect(log.taken).toHaveLength(2);
    log.release();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
    expect(log.held).toBe(0);
    expect((await take('m3')).status).toBe(200);
  });

  test('held twice keeps what it already holds', async () => {
    log.hold();
    const answer = take('m1');
    while (log.held < 1) await new Promise(setImmediate);
    log.hold();
    expect(log.held).toBe(1);
    log.release();
    expect((await answer).status).toBe(200);
  });

  test('waits until whoever called has gone, and not for ever', async () => {
    log.hold();
    const caller = new AbortController();
    const gone = fetch(log.url, {
      method: 'POST',
      body: JSON.stringify({ message_id: 'm1', recipients: [], bytes: 9 }),
      signal: caller.signal,
    }).catch(() => 'gone');
    while (log.held < 1) await new Promise(setImmediate);
    const started = performance.now();
    await log.untilAlone(100);
    expect(performance.now() - started).toBeGreaterThanOrEqual(99);
    caller.abort();
    const left = performance.now();
    await log.untilAlone(30_000);
    expect(performance.now() - left).toBeLessThan(20_000);
    expect(await gone).toBe('gone');
  });
});
