import { expect, test } from 'vitest';
import { residentOf } from './memory.ts';

test('the memory of a process is read by its group, whatever its name holds', () => {
  const status = 'Name:\tx\nVmHWM:\t  9999 kB\nVmRSS:\t    2048 kB\nThreads:\t3\n';
  expect(residentOf('12 (a (b) workerd) S 7 34 34 0 -1 4194560', status)).toEqual([
    { group: 34, name: 'a (b) workerd', mb: 2 },
  ]);
});

test('a process of the kernel has none', () => {
  expect(residentOf('2 (kthreadd) S 0 0 0 0 -1', 'Name:\tkthreadd\n')).toEqual([]);
});
