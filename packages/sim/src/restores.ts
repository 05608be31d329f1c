import type { IdentityId } from '@pmail/core/ids.ts';
import { NO_FAULTS } from './faults.ts';
import { Process } from './process.ts';
import type { Stage } from './schedule.ts';

const MINUTE_MS = 60_000;
/** Longer than any outage of a schedule. */
const ASKS_MAX = 240;

/**
 * An operator remembers the storage of a mailbox, and puts it back to that after a while. With it comes the word that it
 * was: an object's storage is put back by the object's own code, so nobody else is in it before. Where nobody says so it has
 * to find out by itself, which reads of the directory from before can delay; that is played in scenarios alone.
 */
export function putBack(stage: Stage, from: number): void {
  const { universe, deployment, identities } = stage;
  const { identity_id: id } = universe.pick(identities);
  const host = deployment.mailbox(id);
  universe.scheduler.after(from, () => host.mayBeRestored());
  universe.scheduler.after(from + universe.between(1_000, 12 * MINUTE_MS), () => {
    universe.meet('P7');
    const { faults } = universe;
    universe.faults = NO_FAULTS;
    host.restore();
    const word = host.invoke((engine) => engine.rebuildLedger(true));
    universe.faults = faults;
    word
      .catch(() => askUntilWhole(stage, id))
      .catch((error: unknown) => universe.log(`rebuild: ${error instanceof Error ? error.name : '?'}`));
  });
}

/** Whoever has no answer asks how far it is, until there is one; the word itself has counted. */
async function askUntilWhole({ universe, deployment }: Stage, id: IdentityId): Promise<void> {
  const operator = new Process('operator');
  for (let attempt = 0; attempt < ASKS_MAX; attempt++) {
    await universe.sleep(operator, 30_000);
    try {
      await deployment.remote(operator, id).engine((engine) => engine.rebuildLedger(false), 'rebuild');
      return;
    } catch (error) {
      universe.log(`rebuild: ${error instanceof Error ? error.name : '?'}`);
    }
  }
}
