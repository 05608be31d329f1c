import { describe, expect, it } from 'vitest';
import { NOW, runLate } from '../context.fixture.ts';
import { threadLock } from './19-thread-lock.ts';

function retryAfter(heldMs: number): unknown {
  return runLate(threadLock, { lock_held_until: NOW + heldMs })?.details?.['retry_after'];
}

describe('step 19: the thread lock', () => {
  it('lets the holder pass', () => {
    expect(runLate(threadLock, { lock_held_until: null })).toBeNull();
  });

  it('refuses while another message holds the thread', () => {
    expect(runLate(threadLock, { lock_held_until: NOW + 5_000 })).toEqual({
      ok: false,
      code: 'thread_busy',
      details: { retry_after: 5 },
    });
  });

  it('rounds the wait up to whole seconds, within 1 and 60', () => {
    expect(retryAfter(5_001)).toBe(6);
    expect(retryAfter(59_999)).toBe(60);
    expect(retryAfter(60_001)).toBe(60);
    expect(retryAfter(120_000)).toBe(60);
    expect(retryAfter(1)).toBe(1);
    expect(retryAfter(0)).toBe(1);
    expect(retryAfter(-3_000)).toBe(1);
  });
});
