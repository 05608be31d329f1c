import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Heap, heapsAfterCollection } from '@pmail/testkit/runtime/inspector.ts';
import type { Runtime } from '@pmail/testkit/runtime/runtime.ts';

/** What the runtime holds at one moment of the load. */

export interface Sample {
  /** Minutes since the load began. */
  at: number;
  /** Actions done by then. */
  actions: number;
  /** MB of memory of the whole process, read before anything was collected. */
  resident: number;
  /** MB that each isolate holds after a collection. */
  held: ReadonlyMap<string, number>;
}

const MB = 1_048_576;

/** MB that workerd holds, among the processes of a group. */
async function workerdMb(group: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pgid=,rss=,comm=']);
  const kb = stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([pgid, , name]) => Number(pgid) === group && (name ?? '').endsWith('workerd'))
    .reduce((sum, [, rss]) => sum + Number(rss), 0);
  if (kb === 0) throw new Error('no workerd runs');
  return kb / 1024;
}

/** Buffers are counted too: a leak need not be one of objects. */
const heldMb = ({ used, external }: Heap): number => (used + external) / MB;

/** Reads it all, and makes every isolate collect its garbage first. */
export async function takeSample(runtime: Runtime, at: number, actions: number): Promise<Sample> {
  const resident = await workerdMb(runtime.pid);
  const heaps = await heapsAfterCollection(runtime.inspectorPort);
  return { at, actions, resident, held: new Map(heaps.map((heap) => [heap.isolate, heldMb(heap)])) };
}
