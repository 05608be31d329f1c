import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Resident memory of the runtime over time, and whether it stays flat. */

export interface Sample {
  /** Minutes since the load began. */
  at: number;
  mb: number;
}

/** MB that workerd holds, among the processes of a group. */
export async function workerdMb(group: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pgid=,rss=,comm=']);
  const kb = stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([pgid, , name]) => Number(pgid) === group && (name ?? '').endsWith('workerd'))
    .reduce((sum, [, rss]) => sum + Number(rss), 0);
  return kb / 1024;
}

export interface Line {
  /** MB a minute. */
  slope: number;
  mean: number;
  /** MB by which the line rises from the first of the samples to the last. */
  growth: number;
  minutes: number;
}

/** The straight line through the samples (least squares). @throws when there are fewer than two */
export function lineThrough(samples: readonly Sample[]): Line {
  if (samples.length < 2) throw new Error('a line needs two samples');
  const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [at, mb] = [mean(samples.map((sample) => sample.at)), mean(samples.map((sample) => sample.mb))];
  const spread = samples.reduce((sum, sample) => sum + (sample.at - at) ** 2, 0);
  const joint = samples.reduce((sum, sample) => sum + (sample.at - at) * (sample.mb - mb), 0);
  const slope = spread === 0 ? 0 : joint / spread;
  const minutes = (samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0);
  return { slope, mean: mb, growth: slope * minutes, minutes };
}

/** What caches and the garbage collector may do by themselves. */
const GROWTH_SHARE_MAX = 0.15;
const GROWTH_MB_MAX = 25;

/** Flat is what rises by no more than the collector's own breathing, however long it is watched. */
export function isFlat({ growth, mean }: Line): boolean {
  return growth <= Math.max(GROWTH_MB_MAX, mean * GROWTH_SHARE_MAX);
}
