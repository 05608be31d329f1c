import { expect, it } from 'vitest';
import { isStopped, run, stopAll } from './children.ts';

it('a process that runs is ended when all stops, and no other is started', async () => {
  let started = (): void => {};
  const up = new Promise<void>((resolve) => {
    started = resolve;
  });
  const ended = run('.', ['-e', 'console.log(1); setInterval(() => {}, 1_000)'], async () => {
    started();
    return false;
  });
  await up;
  await stopAll();
  expect(await ended).toMatchObject({ code: null });
  expect(isStopped()).toBe(true);
  await expect(run('.', ['-e', ''], async () => false)).rejects.toThrow('stopped');
});
