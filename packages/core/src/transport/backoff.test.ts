import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs, isBackoffOver } from './backoff.ts';

const CLASSES = ['rate_limit', 'quota', 'paused', 'relay'] as const;
const DAY = 24 * 3_600_000;

/** Seconds before jitter. */
function schedule(kind: (typeof CLASSES)[number], n: number): number {
  if (kind === 'rate_limit') return Math.min(10 * n, 60);
  let seconds = 60;
  for (let i = 1; i < n && seconds < 3_600; i++) seconds *= 2;
  return Math.min(seconds, 3_600);
}

describe('the wait before another attempt', () => {
  it.each(CLASSES)('follows its schedule: %s', (kind) => {
    for (let n = 1; n <= 50; n++) expect(backoffMs(kind, n, 0.5)).toBe(schedule(kind, n) * 1_000);
  });

  it('ends at 60 s for a rate limit and at an hour for the others', () => {
    expect(backoffMs('rate_limit', 5, 0.5)).toBe(50_000);
    expect(backoffMs('rate_limit', 1_000_000, 0.5)).toBe(60_000);
    for (const kind of ['quota', 'paused', 'relay'] as const) {
      expect(backoffMs(kind, 6, 0.5)).toBe(1_920_000);
      expect(backoffMs(kind, 7, 0.5)).toBe(3_600_000);
      expect(backoffMs(kind, 10_000, 0.5)).toBe(3_600_000);
    }
  });

  it('varies by at most a tenth to either side, and by all of that', () => {
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...CLASSES), fc.integer({ min: 1, max: 200 }), chance, (kind, n, random) => {
        const base = schedule(kind, n) * 1_000;
        const wait = backoffMs(kind, n, random);
        expect(wait).toBeGreaterThanOrEqual(Math.floor(base * 0.9));
        expect(wait).toBeLessThanOrEqual(Math.ceil(base * 1.1));
        expect(Number.isInteger(wait)).toBe(true);
      }),
    );
    expect(backoffMs('quota', 1, 0)).toBe(54_000);
    expect(backoffMs('quota', 1, 0.999_999_999)).toBe(66_000);
  });
});

describe('the end of waiting', () => {
  it('is 24 hours after acceptance; a retry at that very moment still counts', () => {
    const submitted = Date.UTC(2026, 10, 30);
    expect(isBackoffOver(submitted, submitted)).toBe(false);
    expect(isBackoffOver(submitted, submitted + DAY)).toBe(false);
    expect(isBackoffOver(submitted, submitted + DAY + 1)).toBe(true);
  });
});
