import type { ChildProcess } from 'node:child_process';

/** So long a process that was asked to end may take: workerd closes some thirty databases. */
const STOP_MS_MAX = 20_000;

/**
 * Ends a process that leads its own group, and waits until it has. SIGKILL goes to the whole group at once; SIGTERM asks
 * the leader, and one that hangs in its tidying is killed with its group, because whoever stops it must go on.
 */
export async function endChild(
  child: ChildProcess,
  signal: 'SIGKILL' | 'SIGTERM',
  limitMs = STOP_MS_MAX,
): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  if (signal === 'SIGKILL') killGroup(pid);
  else child.kill('SIGTERM');
  const late = setTimeout(() => killGroup(pid), limitMs);
  await ended;
  clearTimeout(late);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended in this moment.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
