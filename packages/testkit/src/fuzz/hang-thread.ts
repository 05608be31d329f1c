import { writeSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';

export interface HangThreadData {
  /** How many inputs have begun, then the seed and the number of the one that runs. */
  beats: Int32Array<SharedArrayBuffer>;
  hang_ms: number;
}

const { beats, hang_ms } = workerData as HangThreadData;
for (let seen = 0; ; ) {
  const beat = Atomics.load(beats, 0);
  // Nobody wakes it: all that counts is whether anything began while it slept.
  if (beat === seen && beat !== 0) break;
  seen = beat;
  Atomics.wait(beats, 0, beat, hang_ms);
}
let name = '';
for (;;) {
  const received = parentPort === null ? undefined : receiveMessageOnPort(parentPort);
  if (received === undefined) break;
  name = String(received.message);
}
const [, seed = 0, number = 0] = beats;
const which = number === 0 ? 'a kept input' : `input ${number}`;
writeSync(
  2,
  `${name}: ${which} of seed ${seed} did not come to an end in ${hang_ms / 1_000} s\n` +
    `  again: npm run fuzz -- --only '${name}' --inputs ${Math.max(1, number)} --seed ${seed}\n`,
);
// What holds the other thread lets nothing gentler through.
process.kill(process.pid, 'SIGKILL');
