import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { HangThreadData } from './hang-thread.ts';

/**
 * Looks, from a thread of its own, whether inputs still come to an end. A parser that never does holds the thread it runs
 * in, so nothing in that thread could tell.
 */
export interface HangWatch {
  fuzzer: (name: string) => void;
  /** An input begins. */
  input: (seed: number, number: number) => void;
  stop: () => Promise<void>;
}

/** Its thread ends the process, and says by which input, when one takes so long. */
export function watchForHangs(hang_ms: number): HangWatch {
  const beats = new Int32Array(new SharedArrayBuffer(12));
  const thread = new Worker(join(import.meta.dirname, 'hang-thread.ts'), {
    workerData: { beats, hang_ms } satisfies HangThreadData,
    // What node was told of the program that it runs is not meant for this one.
    execArgv: [],
  });
  thread.unref();
  let beat = 0;
  return {
    fuzzer: (name) => thread.postMessage(name),
    input: (seed, number) => {
      beats[1] = seed;
      beats[2] = number;
      beat = (beat + 1) | 0;
      Atomics.store(beats, 0, beat);
    },
    stop: async () => {
      await thread.terminate();
    },
  };
}
