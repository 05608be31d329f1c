import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { StateInUse, type StateLock, takeState } from '@pmail/testkit/runtime/lock.ts';

/** The state of one run, which is empty when it begins. */
export interface OwnState {
  /** For the runtime. */
  service: string;
  /** For what the run writes down, beside it. */
  folder: string;
  release(): void;
}

/**
 * Takes a command's folder and empties it, in this order: the run that has it is in the middle of its work, and would
 * find its mailboxes gone. The lock is the command's own and is held while its runtime is dead, too.
 *
 * @param command as a person types it
 * @throws StateInUse that says who has it, and what to do
 */
export function ownState(command: string, folder: string): OwnState {
  mkdirSync(folder, { recursive: true });
  let lock: StateLock;
  try {
    lock = takeState(folder);
  } catch (error) {
    if (!(error instanceof StateInUse)) throw error;
    throw new StateInUse(
      `${command} runs already: ${error.message.replace('runs a service on', 'works in')}, or wait until it has ended`,
    );
  }
  for (const name of readdirSync(folder)) {
    if (name !== 'lock') rmSync(join(folder, name), { recursive: true, force: true });
  }
  const service = join(folder, 'service');
  mkdirSync(service);
  return { service, folder, release: () => lock.release() };
}

/**
 * Runs a command in a folder of its own, gives it back, and ends with what the command answers: with 2, and with who has
 * it, when another run does.
 */
export async function runInOwnState(
  command: string,
  folder: string,
  run: (own: OwnState) => Promise<number>,
): Promise<void> {
  let own: OwnState;
  try {
    own = ownState(command, folder);
  } catch (error) {
    if (!(error instanceof StateInUse)) throw error;
    console.error(error.message);
    process.exitCode = 2;
    return;
  }
  try {
    process.exitCode = await run(own);
  } finally {
    own.release();
  }
}
