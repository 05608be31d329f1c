import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** The processes that a run starts, so that none outlives it. */

const running = new Set<ChildProcess>();
let stopped = false;

/** After this long a process that was asked to end is ended. */
const PATIENCE_MS = 10_000;

export interface Output {
  code: number | null;
  /** The last it said about what went wrong. */
  errors: string;
}

/**
 * Runs node in a tree; `onLine` may end it by answering true.
 *
 * @throws when nothing is started any more
 */
export async function run(root: string, args: string[], onLine: (line: string) => Promise<boolean>): Promise<Output> {
  if (stopped) throw new Error('stopped');
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString('utf8')).slice(-4_000);
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  }).finally(() => running.delete(child));
  const read = async (): Promise<void> => {
    for await (const line of createInterface({ input: child.stdout })) {
      if (await onLine(line)) {
        child.kill('SIGTERM');
        return;
      }
    }
  };
  try {
    const [code] = await Promise.all([ended, read()]);
    return { code, errors };
  } catch (error) {
    child.kill('SIGTERM');
    throw error;
  }
}

/** Ends every process that runs, and starts no other; whoever waits for one hears that it has ended. */
export async function stopAll(): Promise<void> {
  stopped = true;
  await Promise.all(
    [...running].map(
      (child) =>
        new Promise<void>((resolve) => {
          const force = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
          child.once('exit', () => {
            clearTimeout(force);
            resolve();
          });
          child.kill('SIGTERM');
        }),
    ),
  );
}

export function isStopped(): boolean {
  return stopped;
}
