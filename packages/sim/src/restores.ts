import { NO_FAULTS } from './faults.ts';
import type { Stage } from './schedule.ts';

const MINUTE_MS = 60_000;

/**
 * An operator remembers the storage of a mailbox, and puts it back to that after a while. With it comes the word that it
 * was: an object's storage is put back by the object's own code, so nobody else is in it before. Where nobody says so it has
 * to find out by itself, which reads of the directory from before can delay; that is played in scenarios alone.
 */
export function putBack({ universe, deployment, identities }: Stage, from: number): void {
  const host = deployment.mailbox(universe.pick(identities).identity_id);
  universe.scheduler.after(from, () => host.mayBeRestored());
  universe.scheduler.after(from + universe.between(1_000, 12 * MINUTE_MS), () => {
    universe.meet('P7');
    const { faults } = universe;
    universe.faults = NO_FAULTS;
    host.restore();
    const word = host.invoke((engine) => engine.rebuildLedger(true));
    universe.faults = faults;
    word.catch((error: unknown) => universe.log(`rebuild: ${error instanceof Error ? error.name : '?'}`));
  });
}
