import type { Sample } from './memory.ts';

/** Whether the runtime leaks, by what was sampled of it under load. */

export interface Point {
  x: number;
  y: number;
}

/** The straight line through points (least squares): its slope, and by how much it rises from the first to the last. */
export function lineThrough(points: readonly Point[]): { slope: number; growth: number } {
  const average = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [average(points.map((point) => point.x)), average(points.map((point) => point.y))];
  const spread = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  const joint = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  const slope = spread === 0 ? 0 : joint / spread;
  return { slope, growth: slope * ((points.at(-1)?.x ?? 0) - (points[0]?.x ?? 0)) };
}

/** Caches, functions and code fill up in this share of the time; what comes after must be flat. */
export const WARM_UP_SHARE = 0.2;
/** Fewer samples than this after the warm-up say nothing. */
const SAMPLES_MIN = 8;
/** By how much the floor of what an isolate holds after a collection may rise, however long it is watched. */
const HELD_GROWTH_MB_MAX = 1.5;
/** The stand-ins of the platform keep in memory what waits in a queue, which on a slow machine is much. */
const STAND_IN_GROWTH_MB_MAX = 16;
/**
 * By how much the resident memory of the whole process may still rise after the warm-up, and where it must end. It is
 * never given back by the allocator and holds the garbage of the busiest moment between two collections, a page cache of
 * up to 2 MB for each of some thirty databases, and what the engine sets aside for young objects of twenty isolates.
 * What leaks outside of every heap shows here alone.
 */
const RESIDENT_GROWTH_MB_MAX = 150;
const RESIDENT_MB_MAX = 1_000;
/** Of a leak of this size each action, what is needed to see it. */
const LEAK_TO_SEE_KB = 5;

/**
 * By how much the floor rises from the first third of the samples to the last. What queues and alarms work on at the
 * moment of a sample is held too and comes and goes by some MB; a leak stays, and lifts the lowest sample as well.
 */
export function floorGrowth(held: readonly number[]): number {
  const third = Math.floor(held.length / 3);
  return Math.min(...held.slice(-third)) - Math.min(...held.slice(0, third));
}

export interface Judgement {
  /** What was measured, in words. */
  lines: string[];
  faults: string[];
}

/** @param samples all of them, in their order */
export function judgeMemory(samples: readonly Sample[], minutes: number): Judgement {
  const warm = samples.filter(({ at }) => at >= minutes * WARM_UP_SHARE);
  const [first, last] = [warm[0], warm.at(-1)];
  if (first === undefined || last === undefined || warm.length < SAMPLES_MIN) {
    return { lines: [], faults: [`${warm.length} samples after the warm-up tell nothing about memory; run it longer`] };
  }
  const actions = last.actions - first.actions;
  // From the first sample to the beginning of the last third.
  const smallestKb = (HELD_GROWTH_MB_MAX * 1_024) / Math.max(1, (actions * 2) / 3);
  const lines = [
    `memory, ${warm.length} samples over ${actions} actions after the warm-up; ` +
      `a leak of ${smallestKb.toFixed(2)} KB an action would show:`,
  ];
  const faults: string[] = [];
  if (smallestKb > LEAK_TO_SEE_KB) {
    faults.push(`${actions} actions are too few to see a leak of ${LEAK_TO_SEE_KB} KB an action; run it longer`);
  }
  for (const isolate of new Set([OURS, ...warm.flatMap(({ held }) => [...held.keys()])])) {
    const { held, missing } = courseOf(warm, isolate);
    // Ours has to be there always: under another name it would pass for a stand-in.
    if (isolate === OURS && missing > 0) faults.push(`${OURS} is missing in ${missing} of ${warm.length} samples`);
    // A stand-in may come and go, and is judged by the samples that have it, when those are enough.
    if (held.length < SAMPLES_MIN) continue;
    const growth = floorGrowth(held);
    const flat = growth <= (isolate === OURS ? HELD_GROWTH_MB_MAX : STAND_IN_GROWTH_MB_MAX);
    const rise = `${signed(growth)} MB`;
    if (!flat) faults.push(`what ${isolate} holds after a collection rises: ${rise}`);
    if (!flat || isolate === OURS) lines.push(`  ${isolate}: ${held.at(-1)?.toFixed(1)} MB held, ${rise}`);
  }
  const { growth } = lineThrough(warm.map(({ actions: x, resident: y }) => ({ x, y })));
  const highest = Math.max(...warm.map(({ resident }) => resident));
  lines.push(`  resident, the whole process: ${highest.toFixed(0)} MB at most, ${signed(growth)} MB`);
  if (growth > RESIDENT_GROWTH_MB_MAX) faults.push(`resident memory rises by ${signed(growth)} MB after the warm-up`);
  if (highest > RESIDENT_MB_MAX) faults.push(`resident memory reaches ${highest.toFixed(0)} MB`);
  return { lines, faults };
}

/**
 * What an isolate holds in each sample. One that does not answer in some of them has held something else than nothing
 * there: counted as 0 it would hide a leak at the end, and invent one at the beginning.
 */
function courseOf(samples: readonly Sample[], isolate: string): { held: number[]; missing: number } {
  const held = samples.flatMap((sample) => sample.held.get(isolate) ?? []);
  return { held, missing: samples.length - held.length };
}

/** The isolate of our Worker, with its objects; the others are stand-ins of the platform. */
export const OURS = 'core:user:pylota-mail';

const signed = (value: number): string => `${value >= 0 ? '+' : ''}${value.toFixed(2)}`;
