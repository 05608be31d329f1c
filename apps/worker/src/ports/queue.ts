import type { Queue as QueuePort } from '@pmail/engine/ports.ts';

/** The platform delays by whole seconds, at most twelve hours. */
const DELAY_S_MAX = 43_200;

/** The queue port over a Queues producer. A delay is rounded up, so a job never comes too early. */
export function producer<T>(queue: Queue<T>): QueuePort<T> {
  return {
    send: async (job, delayMs = 0) => {
      const delaySeconds = Math.min(Math.ceil(delayMs / 1_000), DELAY_S_MAX);
      await queue.send(job, delaySeconds > 0 ? { delaySeconds } : {});
    },
  };
}
