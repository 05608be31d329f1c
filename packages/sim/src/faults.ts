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
  /** The shared database answers so late that what it says may no longer be true. */
  db_stale: number;
  /** A statement inside a transaction of an object throws. */
  storage_throws: number;
  /** A queue message is delivered once more, or forgotten after it was accepted. */
  queue_duplicate: number;
  queue_drop: number;
  /** The platform forgets an object's alarm, fires it again, or fires it late. */
  alarm_lost: number;
  alarm_twice: number;
  alarm_late: number;
  /** It does not repeat an alarm that failed, as after its last retry. */
  alarm_gives_up: number;
  /** An object is evicted while it waits. */
  evict: number;
  /** Everything dies at once, and the queues forget what they held. */
  power_loss: number;
  /** Something that the service needs is away for a while; a queue is paused. */
  outage: number;
  /** A consumer takes longer over the transport than its claim lasts, or is killed while it waits for the answer. */
  slow_transport: number;
  die_in_call: number;
  /** The stored message is gone or changed when it is read. */
  store_corrupt: number;
  /** Exactly so many more deliveries of each queue message, instead of chance. */
  copies: number | null;
  /** How often queues deliver a message again before it is a dead letter; null for as often as the real ones. */
  queue_retries_max: number | null;
  /** Provider reports come more than once, before the call has been recorded, or about mail that nobody here sent. */
  event_duplicate: number;
  event_early: number;
  event_stray: number;
  /** The clocks are put on or back; a run has this once, and a jump of a year is taken back. */
  clock: number;
  /** An operator puts a mailbox back to a time before. */
  restore: number;
}

/** The faults that are chances. */
export type ChanceOf = Exclude<keyof Faults, 'crash_at' | 'copies' | 'queue_retries_max'>;

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
  db_stale: 0.1,
  storage_throws: 0.003,
  queue_duplicate: 0.3,
  queue_drop: 0.1,
  alarm_lost: 0.1,
  alarm_twice: 0.2,
  alarm_late: 0.3,
  alarm_gives_up: 0.5,
  evict: 0.02,
  power_loss: 0.3,
  outage: 0.6,
  slow_transport: 0.15,
  die_in_call: 0.15,
  store_corrupt: 0.03,
  event_duplicate: 0.3,
  event_early: 0.3,
  event_stray: 0.1,
  clock: 0.3,
  restore: 0.4,
};

export const CHANCES = Object.keys(CEILING) as ChanceOf[];

/** The chances that are on. */
export function chancesOf(faults: Faults): ChanceOf[] {
  return CHANCES.filter((name) => faults[name] > 0);
}

export const NO_FAULTS: Faults = {
  ...(Object.fromEntries(CHANCES.map((name) => [name, 0])) as Record<ChanceOf, number>),
  crash_at: null,
  copies: null,
  queue_retries_max: null,
};

/** Draws a configuration: each fault is off half of the time, else anywhere up to its ceiling. */
export function drawFaults(random: Random): Faults {
  const faults = { ...NO_FAULTS };
  for (const name of CHANCES) {
    const on = random() < 0.5;
    const level = random() * CEILING[name];
    faults[name] = on ? level : 0;
  }
  if (random() < 0.3) faults.queue_retries_max = Math.floor(random() * 3);
  return faults;
}
