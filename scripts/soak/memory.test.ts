import { describe, expect, it } from 'vitest';
import { isFlat, lineThrough } from './memory.ts';

const samples = (mb: (minute: number) => number) =>
  Array.from({ length: 60 }, (_, n) => ({ at: n / 2, mb: mb(n / 2) }));

describe('memory over time', () => {
  it('has the line that its samples lie on', () => {
    expect(lineThrough(samples((minute) => 200 + 3 * minute))).toMatchObject({ slope: 3, minutes: 29.5, growth: 88.5 });
  });

  it('is flat when it only breathes', () => {
    expect(isFlat(lineThrough(samples((minute) => 200 + 20 * Math.sin(minute))))).toBe(true);
  });

  it('is not flat when it rises all the time, however it breathes', () => {
    expect(isFlat(lineThrough(samples((minute) => 200 + 2 * minute + 20 * Math.sin(minute))))).toBe(false);
  });

  it('needs two samples', () => {
    expect(() => lineThrough([{ at: 0, mb: 1 }])).toThrow('two samples');
  });
});
