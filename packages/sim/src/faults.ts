import type { MarkName } from '@pmail/engine/marks.ts';
import type { Random } from './scheduler.ts';

/**
 * Which things go wrong, and how often. Random schedules draw a configuration each (swarm testing), so that some runs
 * are all about one kind of fault and others mix them.
 */
export interface Faults {
  /** A process dies at a crash mark. */
  crash: number;
  /** Where it dies exactly: the n-th time that a mark is reached. Overrides chance. */
  crash_at: { mark: MarkName; nth: number } | null;
  /** A call to an object fails before, or after, it has had its effect. */
  call_lost: number;
  answer_lost: number;
  /** The same for the object store, the shared database and sending to a queue. */
  store_lost: number;
  store_answer_lost: number;
  db_lost: number;
  db_answer_lost: number;
  enqueue_lost: number;
  enqueue_answer_lost: number;
  /** A queue message is delivered once more, or forgotten after it was accepted. */
  queue_duplicate: number;
  queue_drop: number;
  /** The platform forgets an object's alarm, fires it again, or fires it late. */
  alarm_lost: number;
  alarm_twice: number;
  alarm_late: number;
  /** An object is evicted while it waits. */
  evict: number;
  /** Everything dies at once, and the queues forget what they held. */
  power_loss: number;
  /** A consumer takes longer over the transport than its claim lasts. */
  slow_transport: number;
  /** The stored message is gone or changed when it is read. */
  store_corrupt: number;
  /** Exactly so many more deliveries of each queue message, instead of chance. */
  copies: number | null;
  /** Provider reports come more than once, and before the call has been recorded. */
  event_duplicate: number;
  event_early: number;
}

/** The faults that are chances. */
export type ChanceOf = Exclude<keyof Faults, 'crash_at' | 'copies'>;

export const NO_FAULTS: Faults = {
  crash: 0,
  crash_at: null,
  call_lost: 0,
  answer_lost: 0,
  store_lost: 0,
  store_answer_lost: 0,
  db_lost: 0,
  db_answer_lost: 0,
  enqueue_lost: 0,
  enqueue_answer_lost: 0,
  queue_duplicate: 0,
  queue_drop: 0,
  alarm_lost: 0,
  alarm_twice: 0,
  alarm_late: 0,
  evict: 0,
  power_loss: 0,
  slow_transport: 0,
  store_corrupt: 0,
  copies: null,
  event_duplicate: 0,
  event_early: 0,
};

/** Highest chance of each fault per opportunity. Some opportunities are many, some are few. */
const CEILING: Record<ChanceOf, number> = {
  crash: 0.03,
  call_lost: 0.05,
  answer_lost: 0.05,
  store_lost: 0.08,
  store_answer_lost: 0.08,
  db_lost: 0.05,
  db_answer_lost: 0.05,
  enqueue_lost: 0.1,
  enqueue_answer_lost: 0.1,
  queue_duplicate: 0.3,
  queue_drop: 0.1,
  alarm_lost: 0.1,
  alarm_twice: 0.2,
  alarm_late: 0.3,
  evict: 0.02,
  power_loss: 0.3,
  slow_transport: 0.15,
  store_corrupt: 0.03,
  event_duplicate: 0.3,
  event_early: 0.3,
};

/** Draws a configuration: each fault is off half of the time, else anywhere up to its ceiling. */
export function drawFaults(random: Random): Faults {
  const faults = { ...NO_FAULTS };
  for (const [name, ceiling] of Object.entries(CEILING)) {
    const on = random() < 0.5;
    const level = random() * ceiling;
    faults[name as keyof typeof CEILING] = on ? level : 0;
  }
  return faults;
}
