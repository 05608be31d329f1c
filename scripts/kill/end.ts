import type { Runtime } from '@pmail/testkit/runtime/runtime.ts';

/** SIGKILL to a runtime. Answers whether it lived: one that had ended by itself was killed by nobody. */
export async function killAlive(runtime: Pick<Runtime, 'pid' | 'kill'>): Promise<boolean> {
  const lived = isAlive(runtime);
  await runtime.kill();
  return lived;
}

function isAlive(runtime: Pick<Runtime, 'pid'>): boolean {
  try {
    return process.kill(runtime.pid, 0);
  } catch {
    return false;
  }
}
