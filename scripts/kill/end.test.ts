import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { killAlive } from './end.ts';

test('what lives is killed, and what has ended by itself does not count as killed', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(child, 'spawn');
  const kill = async (): Promise<void> => {
    if (child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  const runtime = { pid: child.pid ?? 0, kill };
  expect(await killAlive(runtime)).toBe(true);
  expect(child.signalCode).toBe('SIGKILL');
  expect(await killAlive(runtime)).toBe(false);
});

test('what was never started is killed by nobody', async () => {
  const runtime = {
    get pid(): number {
      throw new Error('the runtime does not run');
    },
    kill: async () => {},
  };
  expect(await killAlive(runtime)).toBe(false);
});
