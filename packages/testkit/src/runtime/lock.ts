import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One state is one service: two runtimes on the same files would each have half of what happens. */

export interface StateLock {
  release(): void;
}

/** Somebody else works on this state. */
export class StateInUse extends Error {
  override name = 'StateInUse';
}

/** Takes a folder for this process, also from one that has ended without giving it back. */
export function takeState(folder: string): StateLock {
  const path = join(folder, 'lock');
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
      return { release: () => rmSync(path, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      const owner = ownerOf(path);
      if (owner !== undefined && isAlive(owner)) {
        throw new StateInUse(`process ${owner} runs a service on ${folder}; stop it first`);
      }
      rmSync(path, { force: true });
    }
  }
  throw new StateInUse(`another process has taken ${folder}`);
}

function ownerOf(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
