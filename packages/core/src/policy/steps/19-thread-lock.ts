import { LIMITS } from '../../limits.ts';
import { refuse } from '../../result.ts';
import type { LateStep } from '../step.ts';

/** One message of a thread leaves at a time, so that each can name the one before it. */
export const threadLock: LateStep = {
  number: 19,
  name: 'thread lock',
  phase: 'lock',
  check: ({ now }, _draft, { lock_held_until }) => {
    if (lock_held_until === null) return null;
    const seconds = Math.ceil((lock_held_until - now) / 1000);
    const retry_after = Math.min(Math.max(seconds, 1), LIMITS.thread_busy_retry_s_max);
    return refuse('thread_busy', { retry_after });
  },
};
