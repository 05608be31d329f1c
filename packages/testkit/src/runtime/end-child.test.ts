import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { endChild } from './end-child.ts';

/** A process that leads a group of its own and has begun to run this. */
async function started(code: string): Promise<ChildProcess> {
  const script = `${code}; setInterval(() => {}, 1_000); console.log('runs')`;
  const child = spawn(process.execPath, ['-e', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  if (child.stdout !== null) await once(child.stdout, 'data');
  return child;
}

test('who is asked to end has the time to tidy up', async () => {
  const child = await started("process.on('SIGTERM', () => setTimeout(() => process.exit(3), 100))");
  await endChild(child, 'SIGTERM');
  expect([child.exitCode, child.signalCode]).toEqual([3, null]);
  await endChild(child, 'SIGTERM');
});

test('who hangs in its tidying is killed when the time is over', async () => {
  const child = await started("process.on('SIGTERM', () => {})");
  await endChild(child, 'SIGTERM', 200);
  expect(child.signalCode).toBe('SIGKILL');
});

test('a kill asks nobody', async () => {
  const child = await started("process.on('SIGTERM', () => {})");
  await endChild(child, 'SIGKILL');
  expect(child.signalCode).toBe('SIGKILL');
});
