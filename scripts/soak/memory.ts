import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
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

interface Resident {
  group: number;
  name: string;
  mb: number;
}

/** Linux tells it in files, also where no `ps` is installed, as in small containers. */
function fromProc(): Resident[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      return residentOf(readFileSync(`/proc/${pid}/stat`, 'utf8'), readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      // It has ended in this moment.
      return [];
    }
  });
}

/** One process by its `stat`, where the name may hold blanks and brackets, and its `status`. */
export function residentOf(stat: string, status: string): Resident[] {
  const close = stat.lastIndexOf(')');
  // Behind the name come state, parent and group.
  const group = Number(stat.slice(close + 2).split(' ')[2]);
  const kb = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kb === undefined ? [] : [{ group, name: stat.slice(stat.indexOf('(') + 1, close), mb: Number(kb) / 1_024 }];
}

async function fromPs(): Promise<Resident[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pgid=,rss=,comm=']);
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .map(([pgid, rss, name]) => ({ group: Number(pgid), name: name ?? '', mb: Number(rss) / 1_024 }));
}

/** MB that workerd holds, among the processes of a group. */
async function workerdMb(group: number): Promise<number> {
  const all = existsSync('/proc/self/stat') ? fromProc() : await fromPs();
  const mb = all
    .filter((process) => process.group === group && process.name.endsWith('workerd'))
    .reduce((sum, process) => sum + process.mb, 0);
  if (mb === 0) throw new Error('no workerd runs');
  return mb;
}

/** Buffers are counted too: a leak need not be one of objects. */
const heldMb = ({ used, external }: Heap): number => (used + external) / MB;

/** Reads it all, and makes every isolate collect its garbage first. */
export async function takeSample(runtime: Runtime, at: number, actions: number): Promise<Sample> {
  const resident = await workerdMb(runtime.pid);
  const heaps = await heapsAfterCollection(runtime.inspectorPort);
  return { at, actions, resident, held: new Map(heaps.map((heap) => [heap.isolate, heldMb(heap)])) };
}
