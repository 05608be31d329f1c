import { must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { threadWorkMs } from '@pmail/testkit/fuzz/thread-work.ts';

/** Where the doubling begins: less is read before anything can be told of it. */
const SHORTEST = 1_000;
/** Below, the collector of garbage and the compiler have their steps; whatever grows too fast is soon above. */
const FLOOR_MS = 300;
/** What takes twice as long for twice as much is even, four times is not. */
const GROWTH_MAX = 3;
const TRIES = 4;

/** Takes an input of that length, and answers what work it was, in ms. */
export type Work = (length: number) => Promise<number>;

/**
 * Doubles an input up to a length; its reading must not take much more than twice as long each time. It stops where it
 * does, so what takes hours for the whole length is found in seconds.
 *
 * Only the shortest of some tries counts, and only beside its own half: neither a busy machine nor its speed can make a
 * reader look slow that is not.
 */
export async function mustGrowEvenly(length: number, work: Work): Promise<void> {
  for (let size = Math.min(SHORTEST, length); size <= length; size *= 2) {
    let whole = await work(size);
    let half = 0;
    const grows = () => whole >= FLOOR_MS && whole >= GROWTH_MAX * half;
    if (grows()) half = await work(size / 2);
    for (let tries = 1; tries < TRIES && grows(); tries++) {
      whole = Math.min(whole, await work(size));
      half = Math.min(half, await work(size / 2));
    }
    const seen = `${Math.round(half)} ms, and ${Math.round(whole)} ms for ${size}, twice as much`;
    must(!grows(), `work grows with length: ${seen}`);
  }
}

/** What this thread works, whatever else the machine does. */
export function workOf(read: (length: number) => unknown): Work {
  return async (length) => {
    const before = threadWorkMs();
    await read(length);
    return threadWorkMs() - before;
  };
}
